import assert from "node:assert/strict";
import { test } from "node:test";
import { sql } from "kysely";
import { insertOperation, takeOperation } from "../src/features/backups/operations.ts";
import { takeQueued } from "../src/features/builds/lifecycle-queries.ts";
import {
  changedHostnames,
  claimDue,
  recentFirsts,
  recentOrders,
  saveAttempt,
  syncWanted,
} from "../src/features/certificates/queries.ts";
import { whyNoFirst, whyNoOrder } from "../src/features/certificates/rules.ts";
import { takeDeployment } from "../src/features/deployments/queries.ts";
import { takeDueChecks } from "../src/features/domains/check-queries.ts";
import { insertFollow, takeFollow, takeStatus } from "../src/features/follow/queries.ts";
import { insertNotifications, takeNotification } from "../src/features/notifications/queries.ts";
import { insertPurge, takePurge } from "../src/features/purges/queries.ts";
import { insertRun, takeRun, takeTerminal } from "../src/features/runs/queries.ts";
import { takeDelivery } from "../src/features/webhooks/queries.ts";
import { newId } from "../src/kit/ids.ts";
import type { InProgress } from "../src/store/leases.ts";
import { nothingInProgress } from "./support/nothing-in-progress.ts";
import { testBuild, testDeployment, testDomain, testProject, testThings } from "./support/fixtures.ts";
import { sharedApi, testOrganization, type TestOrganization } from "./support/test-platform.ts";

interface Work {
  /** Requests the work for a new project of the organization. */
  readonly request: (org: TestOrganization) => Promise<unknown>;
  readonly take: (inProgress: InProgress) => Promise<{ readonly org_id: string | null } | undefined>;
}

const api = await sharedApi();

const owner = "test";
let count = 0;

async function projectOf(org: TestOrganization) {
  const { id } = await testProject(api.platform, org);
  return { org_id: org.id, project_id: id };
}

async function activeDeployment(org: TestOrganization, status: "pending" | "active") {
  const of = await projectOf(org);
  const build_id = await testBuild(api.platform, of, { status: "succeeded" });
  return { ...of, deployment_id: await testDeployment(api.platform, of, { build_id, number: 1, status }) };
}

async function requestRun(org: TestOrganization, terminal: boolean) {
  const of = await activeDeployment(org, "active");
  const id = newId("run");
  const run = { ...of, id, command: "true", timeout_seconds: 60, requested_by: "ada", terminal, token_id: "tok" };
  await api.platform.db.transaction().execute((tx) => insertRun(tx, { ...run, deployment: 1 }));
  return id;
}

async function followBranch(org: TestOrganization, sealed_token?: Buffer) {
  const of = { ...(await projectOf(org)), id: newId("fol"), url: "https://git.test/a.git", branch: "main" };
  const keys = { public_key: null, sealed_key: null, sealed_secret: Buffer.alloc(1) };
  const { db } = api.platform;
  await db.transaction().execute((tx) => insertFollow(tx, { ...of, provider: "other", ...keys }));
  if (sealed_token !== undefined)
    await db.updateTable("project_follow").set({ sealed_token }).where("id", "=", of.id).execute();
  return of;
}

const terminals: string[] = [];
const works: Readonly<Record<string, Work>> = {
  builds: {
    request: async (org) => {
      const id = await testBuild(api.platform, await projectOf(org), { status: "queued" });
      await api.platform.db.updateTable("build").set({ origin: "upload" }).where("id", "=", id).execute();
    },
    take: (inProgress) => takeQueued(api.platform.db, owner, inProgress),
  },
  deployments: {
    request: (org) => activeDeployment(org, "pending"),
    take: (inProgress) => takeDeployment(api.platform.db, owner, inProgress),
  },
  commands: {
    request: (org) => requestRun(org, false),
    take: (inProgress) => takeRun(api.platform.db, owner, inProgress),
  },
  backups: {
    request: async (org) => {
      const { project, backup } = await testThings(api.platform, org);
      const operation = { id: newId("bop"), org_id: org.id, project_id: project.id, backup_id: backup };
      await api.platform.db
        .transaction()
        .execute((tx) => insertOperation(tx, { ...operation, kind: "verify", database_name: "verify_1" }));
    },
    take: (inProgress) => takeOperation(api.platform.db, owner, inProgress),
  },
  certificates: {
    request: async (org) => {
      const row = { id: newId("crt"), hostname: `n${(count += 1)}.${org.slug}.test`, challenge: "http-01" as const };
      await api.platform.db
        .insertInto("certificate")
        .values({ ...row, org_id: org.id })
        .execute();
    },
    take: (inProgress) => claimDue(api.platform.db, owner, inProgress),
  },
  "followed branches": {
    request: (org) => followBranch(org),
    take: (inProgress) => takeFollow(api.platform.db, owner, inProgress),
  },
  terminals: {
    request: async (org) => terminals.push(await requestRun(org, true)),
    take: (inProgress) => takeTerminal(api.platform.db, owner, { open: terminals, inProgress }),
  },
  purges: {
    request: async (org) => {
      const purge = { ...(await projectOf(org)), id: newId("pur"), requested_by: "ada" };
      await api.platform.db.transaction().execute((tx) => insertPurge(tx, purge));
    },
    take: (inProgress) => takePurge(api.platform.db, owner, inProgress),
  },
  "events of webhooks": {
    request: async (org) => {
      const { webhook } = await testThings(api.platform, org);
      const delivery = { org_id: org.id, webhook_id: webhook, event: "deployment.live", data: "{}" };
      await api.platform.db.insertInto("webhook_delivery").values(delivery).execute();
    },
    take: (inProgress) => takeDelivery(api.platform.db, owner, inProgress, []),
  },
  messages: {
    request: (org) => {
      const message = {
        id: newId("ntf"),
        org_id: org.id,
        notifier: "one",
        kind: "alert",
        sealed_message: Buffer.alloc(1),
      };
      const times = { created_at: new Date(), expires_at: new Date(Date.now() + 3_600_000) };
      return insertNotifications(api.platform.db, [{ ...message, ...times }]);
    },
    take: (inProgress) => takeNotification(api.platform.db, owner, ["one"], inProgress),
  },
  "states of commits": {
    request: async (org) => {
      const { id, org_id, project_id } = await followBranch(org, Buffer.alloc(1));
      const of = { org_id, project_id };
      const build_id = await testBuild(api.platform, of, { status: "succeeded" });
      await api.platform.db.insertInto("commit_status").values({ build_id, follow_id: id }).execute();
    },
    take: (inProgress) => takeStatus(api.platform.db, 60, inProgress),
  },
};

for (const [name, { request, take }] of Object.entries(works))
  test(`${name}: an organization with a full share leaves the next slot to another organization, and one without work in progress comes first`, async () => {
    const { db } = api.platform;
    await db.updateTable("organization").set({ suspended_at: new Date() }).execute();
    const [busy, other] = [
      await testOrganization(db, `busy-${(count += 1)}`),
      await testOrganization(db, `other-${count}`),
    ];
    for (let each = 0; each < 3; each += 1) await request(busy);
    await request(other);
    const full = { ...nothingInProgress, full: [busy.id], served: [busy.id] };
    assert.equal(
      (await take({ ...full, full: [] }))?.org_id,
      other.id,
      "the organization without work in progress comes first",
    );
    assert.equal(await take(full), undefined, "the slot stays free for another organization");
    assert.equal((await take({ ...full, full: [] }))?.org_id, busy.id);
    await db.updateTable("organization").set({ suspended_at: new Date() }).where("id", "!=", busy.id).execute();
    assert.equal((await take(full))?.org_id, busy.id, "an organization without competitors gets all slots");
  });

test("the first due hostname of each organization is checked before the second of any organization", async () => {
  const { db } = api.platform;
  await db.deleteFrom("domain").execute();
  const [many, few] = [await testOrganization(db, "many-names"), await testOrganization(db, "few-names")];
  const attach = async (org: TestOrganization, hostname: string, dueSince: string) => {
    await testDomain(api.platform, await projectOf(org), hostname);
    await db.updateTable("domain").set({ next_check_at: dueSince }).where("hostname", "=", hostname).execute();
  };
  for (const each of ["a", "b", "c", "d"]) await attach(many, `${each}.many.test`, "2020-01-01");
  await attach(few, "a.few.test", "2020-01-02");
  const taken = await takeDueChecks(db, 2);
  const found = await db.selectFrom("domain").select("org_id").where("id", "in", taken).execute();
  assert.deepEqual(new Set(found.map(({ org_id }) => org_id)), new Set([many.id, few.id]));
});

test("an organization can use half of the remaining certificate orders, and detached names still count", async () => {
  const { db } = api.platform;
  const [one, other] = [await testOrganization(db, "orders-one"), await testOrganization(db, "orders-other")];
  const order = async (org: TestOrganization, from: number, to: number) => {
    const names = { org: org.id, slug: org.slug };
    await sql`insert into certificate (id, hostname, challenge, ordered_at, org_id)
      select 'crt_' || ${names.slug}::text || n, n || '.' || ${names.slug}::text || '.test', 'http-01', now(), ${names.org}
      from generate_series(${from}::int, ${to}::int) as t(n)`.execute(db);
  };
  const whyNot = async (id: string | null) => whyNoOrder(await recentOrders(db, id), id);
  await sql`delete from certificate`.execute(db);
  await order(one, 1, 124);
  assert.equal(await whyNot(one.id), null);
  await order(one, 125, 125);
  assert.match((await whyNot(one.id)) ?? "", /^The organization has ordered/);
  await syncWanted(db, []);
  assert.match((await whyNot(one.id)) ?? "", /^The organization has ordered/, "its names are detached");
  assert.equal(await whyNot(other.id), null);
  assert.equal(await whyNot(null), null, "the platform's own names have priority");
  await order(other, 1, 125);
  assert.match((await whyNot(null)) ?? "", /^The platform has ordered/);
  await sql`update certificate set ordered_at = now() - interval '4 hours'`.execute(db);
  assert.equal(await whyNot(one.id), null);
  await syncWanted(db, []);
  assert.equal((await db.selectFrom("certificate").select("id").execute()).length, 0, "old orders are deleted");
});

test("the new certificates of a week below one registered domain are shared, and the text says when the next one is due", async () => {
  const { db } = api.platform;
  const [one, other] = [await testOrganization(db, "firsts-one"), await testOrganization(db, "firsts-other")];
  const issue = async (org: TestOrganization, count: number, zone = "apps.test") => {
    await sql`insert into certificate (id, hostname, challenge, org_id, zone, chain_pem, first_issued_at)
      select 'crt_' || gen_random_uuid(), gen_random_uuid() || '.' || ${zone}::text, 'http-01', ${org.id}, ${zone}, '', now() - interval '6 days'
      from generate_series(1, ${count}::int)`.execute(db);
  };
  const waits = async (org_id: string | null, zone = "apps.test") =>
    whyNoFirst(await recentFirsts(db, { id: "crt_new", zone, org_id }), { org_id, zone }, 10, Date.now());
  await sql`delete from certificate`.execute(db);
  await issue(one, 4);
  assert.equal(await waits(one.id), null);
  await issue(one, 1);
  const share = await waits(one.id);
  const tomorrow = new Date(Date.now() + 24 * 3_600_000).toISOString().slice(0, 10);
  assert.match(share?.detail ?? "", /^The organization's share of the 10 new certificates .* names below apps\.test /);
  assert.ok(share?.detail.includes(`the next is due at ${tomorrow}`), share?.detail);
  assert.ok(Math.abs((share?.nextMs ?? 0) - 24 * 3_600_000) < 60_000);
  assert.equal(await waits(other.id), null, "another organization has its own share");
  assert.equal(await waits(one.id, "one.test"), null, "another registered domain has its own limit");
  await issue(other, 2);
  await sql`insert into certificate (id, hostname, challenge, org_id, zone, status, lease_until)
    select 'crt_' || n, n || '.apps.test', 'http-01', ${other.id}, 'apps.test', 'issuing', now() + interval '30 seconds'
    from generate_series(1, 3) as t(n)`.execute(db);
  assert.match((await waits(null))?.detail ?? "", /^The 10 new certificates /, "orders in progress count");
  await sql`update certificate set wanted = false, not_after = now() - interval '1 day', lease_until = null`.execute(
    db,
  );
  await syncWanted(db, []);
  assert.match((await waits(one.id))?.detail ?? "", /^The organization's share/, "deleted names still count");
  await sql`update certificate set first_issued_at = now() - interval '8 days'`.execute(db);
  assert.equal(await waits(one.id), null);
});

test("a project's default name needs a certificate once the project has been live", async () => {
  const org = await testOrganization(api.platform.db, "never-live");
  const never = await projectOf(org);
  const live = await activeDeployment(org, "active");
  const { db } = api.platform;
  await db
    .updateTable("deployment")
    .set({ activated_at: sql<string>`now()` })
    .where("id", "=", live.deployment_id)
    .execute();
  const { projects } = await changedHostnames(db, null, true);
  const namesOf = ({ project_id }: { project_id: string }) =>
    projects.find((each) => each.project_id === project_id)?.hostnames.length;
  assert.deepEqual([namesOf(never), namesOf(live)], [0, 1]);
});

test("an order counts for the organization that owns the name, and detaching the name does not reset the pause after a failure", async () => {
  const { db } = api.platform;
  const org = await testOrganization(db, "failing");
  const hostname = "www.failing.test";
  await testDomain(api.platform, await projectOf(org), hostname);
  const wanted = [{ hostname, zone: "failing.test", org_id: org.id, challenge: "http-01" as const }];
  await syncWanted(db, wanted);
  const due = await claimDue(db, owner, nothingInProgress);
  assert.deepEqual([due?.hostname, due?.org_id], [hostname, org.id]);
  const lease = { table: "certificate", id: due?.id ?? "", owner, fence: due?.fence ?? 0 } as const;
  const record = { detail: "", failures: 1, nextMs: 0 };
  await saveAttempt(db, lease, { ...record, status: "issuing" });
  await saveAttempt(db, lease, { ...record, status: "failed", nextMs: 900_000 });
  assert.equal((await recentOrders(db, org.id)).own, 1);
  await syncWanted(db, []);
  await syncWanted(db, wanted);
  assert.equal(await claimDue(db, owner, nothingInProgress), undefined);
});
