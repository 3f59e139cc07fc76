import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { scopes, type Scope } from "../../src/contract/access.ts";
import { errors } from "../../src/contract/errors.ts";
import { routes } from "../../src/contract/routes.ts";
import { changes, errorsOf, type Row } from "../../src/contract/table.ts";
import { testLimitedPerson, testThings, type Things } from "../support/fixtures.ts";
import {
  sharedApi,
  testOrganization,
  testToken,
  type Called,
  type TestOrganization,
} from "../support/test-platform.ts";
import { losses, type Loss } from "./losses.ts";
import { openToLimited, type Permission } from "./permission.ts";
import { permissions } from "./permissions.ts";
import { postgresHostDouble } from "../support/port-doubles.ts";

const callers = [
  "no token",
  "bad token",
  "stranger",
  "member",
  "owner",
  "operator",
  "wrong scope",
  "suspended",
  "approval mode",
  "limited",
  "limited person",
] as const;
type CallerName = (typeof callers)[number];

const readerLogin = async () => ({ role_name: "reader", password: "none" });
const stopped = async () => ({ state: "stopped" as const });
const api = await sharedApi({ ports: { postgresHost: postgresHostDouble({ observe: stopped, readerLogin }) } });
const home = await testOrganization(api.database.db, "home", { maxProjects: 10_000 });
const abroad = await testOrganization(api.database.db, "abroad", { maxProjects: 10_000 });
const frozen = await testOrganization(api.database.db, "frozen", { maxProjects: 10_000 });
/** One set of things per organization. Calls that change nothing (reads and refused calls) share it. */

await api.database.db
  .updateTable("organization")
  .set({ suspended_at: new Date() })
  .where("id", "=", frozen.id)
  .execute();
await api.database.db.insertInto("platform_backup").values({ id: "pbk_running", origin: "daily" }).execute();
const make = (org: TestOrganization) => testThings(api.platform, org);
const owned = { home: await make(home), abroad: await make(abroad), frozen: await make(frozen) };
/** Another project of the same organization, which tokens and people limited to the first one don't reach. */
const beside = await make(home);

test("the matrix contains every row of the contract, and no other row", () => {
  assert.deepEqual(routes.map((row) => row.name).sort(), Object.keys(permissions).sort());
});

test("only operator rows have an organization in their path beside another parameter", () => {
  for (const row of routes as readonly Row[]) assert.ok(!("org" in row.params.shape) || row.access === "operator");
});

test("for each write it is decided what it may lose, and the contract asks a human accordingly", () => {
  const writes = (routes as readonly Row[]).filter(changes);
  assert.deepEqual(writes.map(({ name }) => name).sort(), Object.keys(losses).sort());
  for (const { name, approval, method } of writes) {
    const loss = losses[name] as Loss;
    assert.equal(approval, loss === "asks" || "asks_if_it_loses" in loss, name);
    if (method === "DELETE" && name !== "approvals.withdraw") assert.equal(loss, "asks", name);
  }
});

for (const row of routes as readonly Row[]) {
  const permission = permissions[row.name];
  if (permission === undefined) continue;
  describe(row.name, () => {
    test("requires the expected access, scopes and approval", () => {
      const { access, scope, further_scopes = [], approval = false, method, names } = permission;
      assert.deepEqual(
        {
          access: row.access,
          scope: row.scope,
          names: row.names,
          further_scopes: row.further_scopes,
          approval: row.approval,
          method: row.method,
        },
        { access, scope, names, further_scopes, approval, method },
      );
    });
    for (const name of callers) {
      const expected = expectedStatus(row.name, permission, name);
      test(`answers ${name} with ${expected}`, async () => {
        const isChange = changes(row) && expected < 400;
        const things = isChange
          ? await testThings(api.platform, home)
          : owned[name === "suspended" ? "frozen" : "home"];
        const called = await send(permission, things, { token: await tokenOf(name, permission, things) });
        assert.equal(called.status, expected, called.text);
        assertDeclared(row, called);
        const isShut = !isOpenToLimited(row.name, permission) && permission.access !== "operator";
        if (isShut && name === "limited") assert.equal(called.body["code"], "unlimited_only");
        if (isShut && name === "limited person")
          assert.equal(called.body["code"], permission.access === "owner" ? "owner_only" : "unlimited_only");
        if (name === "approval mode" && permission.approval === true && called.status === 403)
          assert.equal(called.body["code"], "approval_required");
      });
    }
    // The server checks the rights for a row before it looks anything up, so that 403 does not reveal what exists.
    if (permission.names === null) return;
    test("answers 404 for a missing thing before it reports an invalid request", async () => {
      const never = neverMade(owned.home);
      const wrong = [...Object.keys(row.query.shape), ...(changes(row) ? ["dry_run"] : [])];
      for (const key of wrong) {
        const path = (things: Things) => `${permission.path(things)}?${key}=%00`;
        const called = await send({ ...permission, path }, never, { token: home.operator });
        assert.equal(called.status, 404, `${key}: ${called.text}`);
      }
      const named = await send(permission, never, { token: home.operator }, { nonsense: 1 });
      assert.equal(named.status, 404, named.text);
    });
    if (permission.names === "organization" || permission.everyOrganization) return;
    for (const name of ["limited", "limited person"] as const)
      test(`gives a ${name === "limited" ? "token" : "person"} limited to projects the same bytes for another project's thing as for a missing one`, async () => {
        const limited = await tokenOf(name, permission, owned.home);
        const isOpen = isOpenToLimited(row.name, permission) && (name === "limited" || permission.access === "member");
        const never = neverMade(beside);
        const own = `/v1/projects/${owned.home.project.slug}/env/SIZE`;
        const used = { token: limited, body: { value: "1" }, headers: { "idempotency-key": "used-before" } };
        assert.equal((await api.call("PUT", own, used)).status, 204);
        for (const key of [undefined, "used-before"])
          for (const body of [permission.body?.(beside), { nonsense: 1 }]) {
            const headers = key && changes(row) ? { "idempotency-key": key } : {};
            const theirs = await send(permission, beside, { token: limited, headers }, body);
            const missing = await send(permission, never, { token: limited, headers }, body);
            assert.equal(theirs.text, missing.text);
            assert.deepEqual(comparable(theirs), comparable(missing));
            assert.equal(theirs.status, isOpen ? 404 : 403, theirs.text);
          }
      });
    test("gives the same bytes for another organization's thing as for a missing one", async () => {
      const foreign = owned.abroad;
      const never = neverMade(foreign);
      for (const token of [home.member, home.owner, home.operator]) {
        for (const body of [permission.body?.(foreign), { nonsense: 1 }]) {
          const theirs: Called = await send(permission, foreign, { token }, body);
          const missing: Called = await send(permission, never, { token }, body);
          assert.equal(theirs.text, missing.text);
          assert.deepEqual(comparable(theirs), comparable(missing));
          if (token === home.operator) assert.equal(theirs.status, 404, theirs.text);
        }
      }
    });
  });
}

/** Derives the expected status from the table of permissions, independently of the server's code. */
function expectedStatus(row: string, permission: Permission, caller: CallerName): number {
  const { access, scope, names, allowed, ofPerson, ofMember = allowed, ofLimited = allowed } = permission;
  if (access === "public") return allowed;
  switch (caller) {
    case "no token":
    case "bad token":
      return 401;
    case "suspended":
      return 403;
    case "stranger":
      return names === null || names === "organization" || permission.everyOrganization ? allowed : 404;
    case "wrong scope":
      return scope === null ? allowed : 403;
    case "approval mode":
      // A call that would fail anyway gets its error and creates no approval.
      return permission.approval && allowed < 400 ? 403 : allowed;
    case "member":
      return access === "member" ? ofMember : 403;
    case "limited":
      return access === "operator" || !isOpenToLimited(row, permission) ? 403 : ofLimited;
    case "limited person":
      return access !== "member" || !isOpenToLimited(row, permission) ? 403 : (ofPerson ?? ofLimited);
    case "owner":
      return access === "operator" ? 403 : allowed;
    case "operator":
      return allowed;
  }
}

function isOpenToLimited(name: string, { access, names }: Permission): boolean {
  if (access === "public" || openToLimited.includes(name)) return true;
  return access !== "operator" && ["project", "build", "backup"].includes(names ?? "");
}

async function tokenOf(name: CallerName, permission: Permission, things: Things): Promise<string | undefined> {
  const { db } = api.database;
  const strongest = { role: "owner", platform_admin: true } as const;
  switch (name) {
    case "no token":
      return undefined;
    case "bad token":
      return `${home.owner.slice(0, -1)}${home.owner.endsWith("A") ? "B" : "A"}`;
    case "stranger":
      return abroad.operator;
    case "suspended":
      return frozen.operator;
    case "wrong scope":
      return (
        await testToken(db, home.id, {
          ...strongest,
          scopes: scopes.filter((scope: Scope) => scope !== permission.scope),
        })
      ).text;
    case "limited":
      return (await testToken(db, home.id, { role: "owner", project_ids: [things.project.id] })).text;
    case "limited person":
      return testLimitedPerson(db, home.id, [things.project.id]);
    case "approval mode":
      return (await testToken(db, home.id, { ...strongest, approval_mode: true })).text;
    default:
      return home[name];
  }
}

interface Sender {
  readonly token: string | undefined;
  readonly headers?: Readonly<Record<string, string>>;
}

function send(permission: Permission, things: Things, sender: Sender, body?: unknown): Promise<Called> {
  const given = body ?? permission.body?.(things);
  const hasBody = given !== undefined && permission.method !== "GET";
  return api.call(permission.method, permission.path(things), { ...sender, ...(hasBody ? { body: given } : {}) });
}

function assertDeclared(row: Row, called: Called): void {
  if (called.status < 400) return assert.ok((row.success as readonly number[]).includes(called.status));
  const code = called.body["code"] as keyof typeof errors;
  assert.ok(errorsOf(row).includes(code), `${row.name} answered ${code}, which its contract does not declare`);
  assert.equal(errors[code].status, called.status);
}

function neverMade(like: Things): Things {
  const other = (text: string) => `${text.slice(0, -3)}zzz`;
  const project = { id: other(like.project.id), slug: other(like.project.slug) };
  return {
    project,
    build: other(like.build),
    backup: other(like.backup),
    key: other(like.key),
    approval: other(like.approval),
    home: like.home,
    org: other(like.org),
    token: other(like.token),
    member: other(like.member),
    invite: other(like.invite),
    variable: like.variable,
    preview: like.preview,
    domain: like.domain,
    cron: like.cron,
    webhook: other(like.webhook),
    registry: like.registry.replace("registry-", "registrz-"),
  };
}

/** The response without the headers that differ between any two requests. */
function comparable({ status, headers, text }: Called) {
  const kept = [...headers].filter(
    ([name]) => name !== "x-request-id" && name !== "date" && !name.startsWith("ratelimit-"),
  );
  return { status, text, headers: Object.fromEntries(kept) };
}
