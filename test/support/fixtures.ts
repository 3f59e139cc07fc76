import { randomBytes } from "node:crypto";
import { sql } from "kysely";
import { scopesOf } from "../../src/contract/routes.ts";
import type { HandlerPlatform } from "../../src/features/context.ts";
import { sealFollow } from "../../src/features/follow/follow.ts";
import { markReady, markRunning } from "../../src/features/replicas/replicas.ts";
import { insertKey } from "../../src/features/ssh-keys/queries.ts";
import { sealSecret, sealUrl } from "../../src/features/webhooks/webhooks.ts";
import { hashOf, newTokenText } from "../../src/features/tokens/tokens.ts";
import { newId } from "../../src/kit/ids.ts";
import type { Image } from "../../src/ports/builder.ts";
import type { Db } from "../../src/store/database.ts";
import { testToken, type TestOrganization, type TestTokenOptions } from "./test-platform.ts";

/** The parts of the platform that fixtures need. */
type Store = Pick<HandlerPlatform, "db" | "vault">;

/** One of each resource that an organization can own. */
export interface Things {
  readonly project: { readonly id: string; readonly slug: string };
  readonly build: string;
  readonly key: string;
  readonly token: string;
  /** A person's membership. */
  readonly member: string;
  readonly invite: string;
  readonly approval: string;
  /** The slug of the owning organization. */
  readonly home: string;
  /** The slug of another organization. */
  readonly org: string;
  readonly variable: string;
  /** The branch of a preview. */
  readonly preview: string;
  /** A failed backup; the project has a database `restored` beside its live one. */
  readonly backup: string;
  /** A hostname of the project. */
  readonly domain: string;
  /** The name of a cron job. */
  readonly cron: string;
  readonly webhook: string;
  /** The host of a registry. */
  readonly registry: string;
}

const image: Image = {
  image_ref: "sha256:0",
  kind: "static",
  web_command: "",
  processes: {},
  release_command: null,
  size_bytes: 0,
};

/** Creates a project with a failed build, a variable and a ready database, plus an SSH key and a token of the organization. */
export async function testThings(platform: Store, org: TestOrganization): Promise<Things> {
  const project = await testProject(platform, org);
  const owner = { org_id: org.id, project_id: project.id };
  const build = await testBuild(platform, owner, { status: "failed" });
  const { db, vault } = platform;
  const sealed_value = vault.seal(project.id, "variable:COLOUR", "green");
  await db
    .insertInto("project_variable")
    .values({ ...owner, key: "COLOUR", sealed_value, size_bytes: 11 })
    .execute();
  const domain = await testDomain(platform, owner, `${project.slug}.test`);
  const job = { id: newId("job"), name: "nightly", schedule: "0 0 * * *", path: "/nightly" };
  await db
    .insertInto("cron_job")
    .values({ ...owner, ...job, next_run_at: new Date("2100-01-01") })
    .execute();
  const database = {
    id: newId("dbs"),
    role_name: "r",
    database_name: "d",
    status: "ready",
    engine_version: "15",
    port: 5432,
    host: "/nowhere",
  } as const;
  const sealed_password = vault.seal(project.id, "database_password", "secret");
  await db
    .insertInto("project_database")
    .values({ ...owner, ...database, sealed_password })
    .execute();
  const { role_name, database_name } = database;
  const branch = { id: newId("dbb"), name: "tried", status: "ready", expires_at: new Date("2100-01-01") } as const;
  await db
    .insertInto("database_branch")
    .values({ ...owner, ...branch, role_name, database_name, sealed_password })
    .execute();
  const backup = newId("bak");
  await db
    .insertInto("backup")
    .values({ ...owner, id: backup, origin: "manual", status: "failed", problem_code: "refused", problem: "No." })
    .execute();
  await db
    .insertInto("restored_database")
    .values({ ...owner, name: "restored", backup_id: backup })
    .execute();
  const key = {
    id: newId("key"),
    org_id: org.id,
    name: "laptop",
    public_key: "ssh-ed25519 AAAA",
    created_by: "tok_test",
  };
  const fingerprint = `SHA256:${randomBytes(8).toString("hex")}`;
  await db.transaction().execute((tx) => insertKey(tx, { ...key, fingerprint, created_at: new Date() }));
  const registry = { org_id: org.id, host: `registry-${randomBytes(5).toString("hex")}.example`, username: "ada" };
  const pullPassword = vault.seal(org.id, `registry:${registry.host}`, "secret");
  await db
    .insertInto("registry")
    .values({ ...registry, sealed_password: pullPassword })
    .execute();
  const token = await testToken(db, org.id, {});
  const approval = await testApproval(platform, { ...owner, token_id: token.id });
  // The number of webhooks is limited. Tests that check the first fixture need the first webhook, so it stays.
  await sql`delete from webhook where org_id = ${org.id} and id > (select min(id) from webhook where org_id = ${org.id})`.execute(
    db,
  );
  const webhook = newId("whk");
  const of = { id: webhook, org_id: org.id, name: "chat", host: "https://chat.test", format: "json" } as const;
  const sealed = {
    ...sealUrl(vault, webhook, "https://chat.test/hook"),
    sealed_secret: sealSecret(vault, webhook, "whsec_AAAA"),
  };
  await db
    .insertInto("webhook")
    .values({ ...of, ...sealed, events: ["alert"], hourly_limit: 600 })
    .execute();
  const follow = newId("fol");
  await db
    .insertInto("project_follow")
    .values({
      ...{ ...owner, id: follow, url: "https://git.test/shop.git", branch: "main", provider: "other" },
      sealed_secret: sealFollow(vault, follow, "secret", "whsec_AAAA"),
    })
    .execute();
  const preview = { preview_of: project.id, git_branch: "feature", preview_expires_at: new Date("2100-01-01") };
  const { id: previewId } = await testProject(platform, org);
  await db.updateTable("project").set(preview).where("id", "=", previewId).execute();
  const other = `o-${randomBytes(5).toString("hex")}`;
  await db
    .insertInto("organization")
    .values({ id: newId("org"), slug: other, name: other })
    .execute();
  return {
    project,
    build,
    backup,
    key: key.id,
    token: token.id,
    member: await testMember(db, org.id),
    invite: await testInvite(db, org.id),
    approval,
    home: org.slug,
    org: other,
    variable: "COLOUR",
    preview: "feature",
    domain,
    cron: job.name,
    webhook,
    registry: registry.host,
  };
}

/** Inserts a person who is a member of the organization; returns the membership's id. */
async function testMember(db: Db, orgId: string): Promise<string> {
  return (await insertMember(db, orgId, {})).id;
}

async function insertMember(db: Db, orgId: string, rights: Pick<TestTokenOptions, "project_ids">) {
  const person = { id: newId("per"), name: "Ada" };
  await db.insertInto("person").values(person).execute();
  const { id } = await testToken(db, orgId, { role: "member", scopes: scopesOf("member"), ...rights });
  await db.updateTable("api_token").set({ kind: "member", person_id: person.id }).where("id", "=", id).execute();
  return { id, person_id: person.id };
}

/** Inserts a person who is a member limited to these projects, and has just signed in; returns the session's text. */
export async function testLimitedPerson(db: Db, orgId: string, project_ids: readonly string[]): Promise<string> {
  const { id: token_id, person_id } = await insertMember(db, orgId, { project_ids });
  const text = newTokenText("s");
  const session = { id: newId("ses"), person_id, token_id, hash: hashOf(text), method: "passkey" } as const;
  const times = { fresh_at: new Date(), expires_at: new Date("2100-01-01") };
  await db
    .insertInto("session")
    .values({ ...session, ...times, user_agent: "", address: "" })
    .execute();
  return text;
}

async function testInvite(db: Db, orgId: string): Promise<string> {
  // Only an owner's invitations work. In approval mode it does not keep the organization reachable.
  const { id: created_by } = await testToken(db, orgId, { role: "owner", approval_mode: true });
  // The number of open invitations is limited. The first one stays, as the first webhook does.
  await sql`delete from invite where org_id = ${orgId} and id > (select min(id) from invite where org_id = ${orgId})`.execute(
    db,
  );
  const id = newId("inv");
  const of = { id, org_id: orgId, hash: randomBytes(32), role: "member", created_by } as const;
  await db
    .insertInto("invite")
    .values({ ...of, expires_at: new Date("2100-01-01") })
    .execute();
  return id;
}

/** Inserts a project directly into the database. */
export async function testProject(
  { db, vault }: Store,
  org: TestOrganization,
  slug = `p-${randomBytes(5).toString("hex")}`,
) {
  const id = newId("prj");
  const sealed_cron_secret = vault.seal(id, "cron_secret", "cron secret");
  await db
    .insertInto("project")
    .values({ id, org_id: org.id, slug, name: slug, hostname: `${id}.test`, sealed_cron_secret })
    .execute();
  return { id, slug };
}

interface Owner {
  readonly org_id: string;
  readonly project_id: string;
}

/** Inserts a build directly into the database and returns its id. */
export async function testBuild(
  { db }: Pick<Store, "db">,
  owner: Owner,
  build: { status: "queued" | "running" | "succeeded" | "failed"; commit?: string },
): Promise<string> {
  const id = newId("bld");
  const { count } = await db
    .selectFrom("build")
    .select((of) => of.fn.countAll<number>().as("count"))
    .where("project_id", "=", owner.project_id)
    .executeTakeFirstOrThrow();
  await db
    .insertInto("build")
    .values({
      id,
      ...owner,
      number: count + 1,
      origin: "push",
      commit: "c".repeat(40),
      branch: "main",
      message: "Say hello",
      ...build,
    })
    .execute();
  return id;
}

/** Inserts a deployment of a build directly into the database and returns its id. */
export async function testDeployment(
  { db, vault }: Store,
  owner: Owner,
  deployment: {
    build_id: string;
    number: number;
    status: "pending" | "starting" | "active" | "retired" | "failed";
    commit?: string;
  },
): Promise<string> {
  const id = newId("dep");
  const sealed_variables = vault.seal(owner.project_id, `deployment:${id}`, "{}");
  const fixed = { trigger: "push", commit: "c".repeat(40), image_ref: image.image_ref, image } as const;
  await db
    .insertInto("deployment")
    .values({ id, ...owner, ...fixed, sealed_variables, ...deployment })
    .execute();
  return id;
}

/** Inserts the first start of a replica, ready at this address. */
export async function readyReplica(
  db: Db,
  replica: { org_id: string; deployment_id: string; ordinal?: number; address: { host: string; port: number } },
): Promise<void> {
  const { address, ordinal = 0, ...owner } = replica;
  const key = { ...owner, process: "web", ordinal, attempt: 1 };
  await markRunning(db, { ...key, ...address, machine: "test" });
  await markReady(db, key);
}

/** Inserts an approval that was denied an hour ago directly into the database and returns its id. */
async function testApproval({ db }: Pick<Store, "db">, owner: Owner & { token_id: string }): Promise<string> {
  const id = newId("apr");
  const asked = {
    route: "projects.delete",
    method: "DELETE",
    path: "/v1/projects/demo",
    resource: "[]",
    request: JSON.stringify({ summary: "", body: null, detail: {} }),
  };
  const hashes = { fingerprint: randomBytes(32), link_hash: randomBytes(32) };
  const hourAgo = new Date(Date.now() - 3_600_000);
  const times = { created_at: hourAgo, expires_at: hourAgo, decided_at: hourAgo };
  await db
    .insertInto("approval")
    .values({ ...owner, ...asked, ...hashes, ...times, id, token_name: "test", status: "denied" })
    .execute();
  return id;
}

/** Inserts a hostname directly into the database, with its next DNS check in an hour, and returns it. */
export async function testDomain({ db }: Pick<Store, "db">, owner: Owner, hostname: string): Promise<string> {
  const zone = hostname.split(".").slice(-2).join(".");
  const later = new Date(Date.now() + 3_600_000);
  const row = { ...owner, id: newId("dom"), hostname, zone, dns_detail: "", next_check_at: later };
  await db.insertInto("domain").values(row).execute();
  const held = { org_id: owner.org_id, hostname, zone, proof: "berth-proof=test", held_at: new Date() };
  await db.insertInto("domain_claim").values(held).execute();
  return hostname;
}
