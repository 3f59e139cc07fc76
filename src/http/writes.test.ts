import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { describe, test } from "node:test";
import { sql } from "kysely";
import { Refused } from "../features/context.ts";
import { claimKey, limitKeptAnswers } from "../features/idempotency/idempotency.ts";
import { dryRun as dryRunSchema } from "../contract/dry-run.ts";
import { decideBy, quietNotifier } from "../../test/support/approvals.ts";
import { tenantDatabaseDouble } from "../../test/support/port-doubles.ts";
import { testProject, testThings } from "../../test/support/fixtures.ts";
import { sharedApi, testOrganization, testToken } from "../../test/support/test-platform.ts";

let aheadMs = 0;
let inserts = 0;
let text: string | undefined;
let insertion: () => Promise<void> = async () => {};

const insertRow = async () => {
  inserts += 1;
  await insertion();
  return { outcome: "done", found: { row: { id: inserts, text }, cut: [] } } as const;
};
const api = await sharedApi({
  ports: { notifiers: [quietNotifier], tenantDatabase: tenantDatabaseDouble({ insertRow }) },
  clock: { now: () => new Date(Date.now() + aheadMs) },
});
const org = await testOrganization(api.database.db, "acme", { maxProjects: 1000 });
const things = await testThings(api.platform, org);

let keys = 0;
const newKey = () => `key-${(keys += 1)}`;

function send(method: string, path: string, more: { body?: unknown; key?: string; token?: string } = {}) {
  const { key, token = org.owner, body } = more;
  return api.call(method, path, {
    token,
    ...(body === undefined ? {} : { body }),
    ...(key === undefined ? {} : { headers: { "idempotency-key": key } }),
  });
}

const createProject = (slug: string, key?: string) =>
  send("POST", "/v1/projects", { body: { slug, name: "New" }, ...(key === undefined ? {} : { key }) });
const rename = (slug: string) =>
  api.database.db
    .updateTable("project")
    .set({ slug: `${slug}-before`, hostname: `${slug}-before.test` })
    .where("slug", "=", slug)
    .execute();
const insertPath = () => `/v1/projects/${things.project.slug}/data/tables/public/notes/rows`;

describe("a write with an Idempotency-Key", () => {
  test("is done once, and answered alike ever after", async () => {
    const key = newKey();
    const first = await createProject("once", key);
    const again = await createProject("once", key);
    assert.deepEqual([first.status, first.text], [again.status, again.text]);
    assert.deepEqual(
      [first, again].map(({ headers }) => headers.get("idempotency-replayed")),
      [null, "true"],
    );
    assert.equal((await createProject("once")).body["code"], "slug_taken");
  });

  test("is done once by 20 senders at once", async () => {
    const key = newKey();
    const all = await Promise.all(Array.from({ length: 20 }, () => createProject("parallel", key)));
    for (const { status, body } of all)
      assert.ok(status === 201 || body["code"] === "idempotency_in_progress", JSON.stringify(body));
    const made = all.filter(({ status, headers }) => status === 201 && headers.get("idempotency-replayed") === null);
    assert.equal(made.length, 1);
  });

  test("is refused when the key was another request's, by body, path, query or method", async () => {
    const key = newKey();
    await createProject("mine", key);
    const others = [
      () => createProject("other", key),
      () => send("POST", "/v1/projects?x=1", { body: { slug: "mine", name: "New" }, key }),
      () => send("DELETE", "/v1/projects/mine", { key }),
    ];
    for (const other of others) {
      const refused = await other();
      assert.deepEqual([refused.status, refused.body["code"]], [422, "idempotency_mismatch"]);
    }
  });

  test("keeps its key to its token", async () => {
    const key = newKey();
    await createProject("shared", key);
    const other = await send("POST", "/v1/projects", { body: { slug: "shared", name: "New" }, key, token: org.member });
    assert.equal(other.body["code"], "slug_taken");
  });

  test("leaves the key free when it was refused", async () => {
    const key = newKey();
    await createProject("taken");
    assert.equal((await createProject("taken", key)).status, 409);
    await rename("taken");
    assert.equal((await createProject("taken", key)).status, 201);
  });

  test("goes through with the same key once a human has approved", async () => {
    const agent = (await testToken(api.database.db, org.id, { role: "owner", approval_mode: true })).text;
    const key = newKey();
    const remove = () => send("DELETE", `/v1/ssh-keys/${things.key}`, { key, token: agent });
    const { id } = (await remove()).body["approval"] as { id: string };
    await decideBy(api, id, "approved");
    assert.equal((await remove()).status, 204);
    const replayed = await remove();
    assert.deepEqual([replayed.status, replayed.headers.get("idempotency-replayed")], [204, "true"]);
  });

  test("shows the text of what it made once, and stores it nowhere", async () => {
    const { db } = api.database;
    const made = [
      { token: org.owner, field: "token", path: "/v1/api-tokens", body: { name: "kept" } },
      { token: org.operator, field: "owner_token", path: "/v1/orgs", body: { slug: "made-once", name: "Once" } },
    ];
    for (const { token, field, path, body } of made) {
      const key = newKey();
      const [first, again] = [
        await send("POST", path, { body, key, token }),
        await send("POST", path, { body, key, token }),
      ];
      const { [field]: text, ...rest } = first.body;
      assert.match(String(text), /^berth_/);
      assert.deepEqual([again.status, again.body], [201, { ...rest, [field]: null }]);
      const row = await db.selectFrom("idempotency_key").selectAll().where("key", "=", key).executeTakeFirstOrThrow();
      const kept = api.platform.vault.open(row.token_id, `idempotency:${key}`, row.sealed_answer as Buffer);
      assert.ok(!kept.includes(String(text)) && kept.includes("201"));
    }
  });

  test("is not done again when its answer was too large to keep", async () => {
    const key = newKey();
    const insert = () => send("POST", insertPath(), { body: { values: { id: 8 } }, key });
    text = "x".repeat(2 ** 20);
    const first = await insert();
    text = undefined;
    const before = inserts;
    const again = await insert();
    assert.deepEqual([first.status, again.status, again.body["code"]], [201, 409, "idempotency_answer_gone"]);
    assert.equal(inserts, before);
    const { sealed_answer } = await api.database.db
      .selectFrom("idempotency_key")
      .select("sealed_answer")
      .where("key", "=", key)
      .executeTakeFirstOrThrow();
    assert.equal(sealed_answer, null);
  });

  test("loses its answer to newer ones of its organization, and to no other organization's", async () => {
    const { db } = api.database;
    const [busy, quiet] = [await testOrganization(db, "busy"), await testOrganization(db, "quiet")];
    const create = (slug: string, token: string) =>
      send("POST", "/v1/projects", { body: { slug, name: "New" }, key: slug, token });
    const all = () =>
      Promise.all([create("oldest", busy.owner), create("newest", busy.owner), create("theirs", quiet.owner)]);
    const made = (await all()).map(({ status }) => status);
    const large = { sealed_answer: randomBytes(15_000), expires_at: sql<string>`expires_at - interval '1 hour'` };
    for (const key of ["oldest", "theirs"])
      await db.updateTable("idempotency_key").set(large).where("key", "=", key).execute();
    const kept = async () => {
      const rows = db.selectFrom("idempotency_key").select("key").where("sealed_answer", "is not", null);
      const found = await rows.where("key", "in", ["oldest", "newest", "theirs"]).orderBy("key").execute();
      return found.map(({ key }) => key);
    };
    await limitKeptAnswers(db, 20_000);
    assert.deepEqual(
      [made, await kept()],
      [
        [201, 201, 201],
        ["newest", "oldest", "theirs"],
      ],
    );
    await db
      .updateTable("idempotency_key")
      .set({ sealed_answer: randomBytes(9000) })
      .where("key", "=", "theirs")
      .execute();
    await limitKeptAnswers(db, 10_000);
    assert.deepEqual(await kept(), ["newest", "theirs"]);
    assert.equal((await create("oldest", busy.owner)).body["code"], "idempotency_answer_gone");
  });

  test("is remembered for a day", async () => {
    const key = newKey();
    await createProject("daily", key);
    aheadMs = 24 * 3_600_000 + 1000;
    const after = await createProject("daily", key);
    aheadMs = 0;
    assert.equal(after.body["code"], "slug_taken");
  });

  test("is not done again when it was lost behind its change", async () => {
    const key = newKey();
    const insert = () => send("POST", insertPath(), { body: { values: { id: 1 } }, key });
    insertion = () => Promise.reject(new Error("the process ended here"));
    assert.equal((await insert()).status, 500);
    insertion = async () => {};
    const before = inserts;
    aheadMs = 3_600_000;
    const again = await insert();
    aheadMs = 0;
    assert.equal(again.body["code"], "idempotency_in_progress");
    assert.ok(again.headers.get("retry-after"));
    assert.equal(inserts, before);
  });

  test("is answered alike also when it was refused behind its change", async () => {
    const key = newKey();
    const insert = () => send("POST", insertPath(), { body: { values: { id: 7 } }, key });
    insertion = () => Promise.reject(new Refused("conflict", { error: "There is such a row." }));
    const first = await insert();
    insertion = async () => {};
    const before = inserts;
    const again = await insert();
    assert.deepEqual([first.status, first.text], [409, again.text]);
    assert.deepEqual([again.status, again.headers.get("idempotency-replayed"), inserts], [409, "true", before]);
  });

  test("stores nothing once another sender holds its key", async () => {
    const token = await testToken(api.database.db, org.id, {});
    const keyed = { key: newKey(), caller: { org_id: org.id, token_id: token.id }, request: {}, holdMs: 60_000 };
    const hold = async () => {
      const claimed = await claimKey(api.platform, keyed);
      assert.ok("held" in claimed);
      return claimed.held;
    };
    const first = await hold();
    aheadMs = 120_000;
    const second = await hold();
    for (const late of [
      () => first.keep(api.database.db, { status: 201 }),
      () => api.database.db.transaction().execute(first.commit),
    ])
      await assert.rejects(late(), (error: Refused) => error.code === "idempotency_in_progress");
    await second.keep(api.database.db, { status: 200 });
    assert.deepEqual(await claimKey(api.platform, keyed), { replay: { status: 200 } });
    aheadMs = 0;
  });

  test("is done again when it was lost before its change", async () => {
    const key = newKey();
    await createProject("lost", key);
    const lost = { sealed_answer: null, status_code: null, committed: false };
    await api.database.db.updateTable("idempotency_key").set(lost).where("key", "=", key).execute();
    await rename("lost");
    assert.equal((await createProject("lost", key)).body["code"], "idempotency_in_progress");
    aheadMs = 120_000;
    const retried = await createProject("lost", key);
    aheadMs = 0;
    assert.equal(retried.status, 201);
  });

  test("names a wrong key", async () => {
    for (const key of ["with space", "x".repeat(256)]) {
      const { status, body } = await createProject("wrong-key", key);
      assert.equal(status, 400);
      assert.deepEqual((body["details"] as { path: string }[])[0]?.path, "Idempotency-Key");
    }
  });
});

describe("a write with ?dry_run=true", () => {
  const dryRun = async (method: string, path: string, body?: unknown, token?: string) => {
    const more = { ...(body === undefined ? {} : { body }), ...(token === undefined ? {} : { token }) };
    const called = await send(method, `${path}?dry_run=true`, more);
    return { ...called, said: called.status === 200 ? dryRunSchema.parse(called.body) : undefined };
  };

  test("says what would happen and changes nothing", async () => {
    const { slug } = things.project;
    const { said } = await dryRun("DELETE", `/v1/projects/${slug}`);
    assert.equal(said?.route, "projects.delete");
    const { undelete_until, ...detail } = said.would_change?.detail ?? {};
    assert.deepEqual({ ...said.would_change, detail }, { action: "project.deleted", target: slug, detail: {} });
    assert.ok(Date.parse(String(undelete_until)) > Date.now(), `undelete until ${String(undelete_until)}`);
    assert.deepEqual([said.would_answer, said.needs_approval], [200, false]);
    assert.deepEqual(said.affects?.hostnames, [things.domain]);
    assert.equal((await send("GET", `/v1/projects/${slug}`)).body["state"], "active");
    const { rows } = await api.database.pool.query(
      "select 1 from activity where action = 'project.deleted' and target = $1",
      [slug],
    );
    assert.equal(rows.length, 0);
  });

  test("says that nothing would change where everything is as wanted already", async () => {
    const { said } = await dryRun("POST", `/v1/projects/${things.project.slug}/database`);
    assert.deepEqual([said?.would_answer, said?.would_change], [200, null]);
    const { slug } = await testProject(api.platform, org);
    const first = await dryRun("POST", `/v1/projects/${slug}/database`);
    assert.deepEqual([first.said?.would_answer, first.said?.would_change?.target], [201, slug]);
  });

  test("is refused as the write itself would be", async () => {
    await createProject("gone");
    await send("DELETE", "/v1/projects/gone");
    assert.equal((await dryRun("DELETE", "/v1/projects/gone")).body["code"], "project_deleted");
    assert.equal((await dryRun("DELETE", "/v1/projects/never")).status, 404);
    assert.equal((await dryRun("POST", "/v1/projects", { slug: "UPPER", name: "x" })).status, 400);
    assert.equal((await send("DELETE", "/v1/projects/gone?dry_run=yes")).status, 400);
  });

  test("makes no token, asks no human, and reaches nothing outside", async () => {
    const agent = (await testToken(api.database.db, org.id, { role: "owner", approval_mode: true })).text;
    const made = await dryRun("POST", "/v1/api-tokens", { name: "none" }, agent);
    assert.deepEqual([made.said?.needs_approval, made.said?.would_answer], [true, 201]);
    assert.doesNotMatch(made.text, /berth_/);
    const before = inserts;
    assert.equal((await dryRun("POST", insertPath(), { values: { id: 1 } })).said?.would_answer, 201);
    assert.equal(inserts, before);
    const waiting = await api.call("GET", "/v1/approvals?status=pending", { token: agent });
    assert.deepEqual(waiting.body["approvals"], []);
  });
});

test("an error says what to call next, with the names of the request", async () => {
  await createProject("bare");
  await send("DELETE", "/v1/projects/bare");
  const { body } = await send("GET", "/v1/projects/bare/env");
  assert.deepEqual(body["next"], { route: "projects.undelete", method: "POST", path: "/v1/projects/bare/undelete" });
});
