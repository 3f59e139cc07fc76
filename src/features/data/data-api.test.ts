import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import pg from "pg";
import { createLocalPostgresHost } from "../../adapters/postgres-host-local/local-postgres-host.ts";
import { makeTestPlace, missingPart } from "../../adapters/postgres-host-local/test-fixture.ts";
import { createPostgresTenantDatabase } from "../../adapters/tenant-database-postgres/postgres-tenant-database.ts";
import type { DatabaseSpec, PostgresHost } from "../../ports/postgres-host.ts";
import { testProject } from "../../../test/support/fixtures.ts";
import {
  testApi,
  testOrganization,
  testToken,
  type TestApi,
  type TestOrganization,
} from "../../../test/support/test-platform.ts";
import { insertRestored } from "../backups/backups.ts";
import { databaseOf, requestDatabase, specOf } from "../database/database.ts";
import { eventually } from "../../../test/support/eventually.ts";

describe("the table browser on a project's own instance", { skip: missingPart }, () => {
  let place: ReturnType<typeof makeTestPlace>;
  let host: PostgresHost;
  let api: TestApi;
  let org: TestOrganization;
  let project: { id: string; slug: string };
  let spec: DatabaseSpec;
  let application: pg.Client;

  before(async () => {
    place = makeTestPlace();
    host = createLocalPostgresHost(place.options);
    const tenantDatabase = createPostgresTenantDatabase({
      connections: 3,
      endSession: (login, processId) => host.endSession(login.spec, processId),
      limitSession: (login, processId) => host.limitSession(login.spec, processId),
    });
    api = await testApi({ ports: { postgresHost: host, tenantDatabase } });
    org = await testOrganization(api.database.db, "acme");
    project = await testProject(api.platform, org, "demo");
    spec = await makeDatabase();
    await application.query(`CREATE TABLE notes (id int PRIMARY KEY, body text);
      INSERT INTO notes SELECT n, 'note ' || n FROM generate_series(1, 120) n;
      CREATE TABLE "a/b c" ("🚢 %" bigint); INSERT INTO "a/b c" VALUES (9223372036854775807);
      CREATE FUNCTION deaf() RETURNS int LANGUAGE plpgsql AS $$ BEGIN
        LOOP BEGIN PERFORM pg_sleep(60); EXCEPTION WHEN query_canceled THEN NULL; END; END LOOP; END $$;
      CREATE VIEW deaf_view AS SELECT deaf()`);
  });
  after(async () => {
    await application.end();
    await host.destroy(spec.id);
    await api.close();
    place.remove();
  });

  async function makeDatabase(): Promise<DatabaseSpec> {
    const owner = { org_id: org.id, project_id: project.id };
    await api.database.db.transaction().execute((tx) => requestDatabase(tx, api.platform.vault, owner));
    const row = await databaseOf(api.database.db, org.id, project.id);
    const made = specOf(api.platform.vault, row!);
    const { host: sockets, port } = await host.ensure(made);
    await api.database.db.updateTable("project_database").set({ status: "ready", host: sockets, port }).execute();
    const user = { user: made.role_name, password: made.password, database: made.database_name };
    application = new pg.Client({ host: sockets, port, ...user });
    application.on("error", () => {});
    await application.connect();
    return made;
  }

  const path = (rest: string) => `/v1/projects/demo/data/tables${rest}`;
  const get = (rest: string) => api.call("GET", path(rest), { token: org.member });

  test("tables are listed, and their rows read page by page", async () => {
    const list = await get("?sort=name");
    assert.equal(list.status, 200, list.text);
    const tables = list.body["tables"] as { name: string; kind: string }[];
    assert.deepEqual(
      tables.map(({ name, kind }) => [name, kind]),
      [
        ["a/b c", "table"],
        ["deaf_view", "view"],
        ["notes", "table"],
      ],
    );
    const page = await get("/public/notes?limit=50&offset=50&dir=desc");
    assert.equal(page.status, 200, page.text);
    const { rows, columns, total, estimated, next_offset, primary_key } = page.body as Record<string, unknown[]>;
    assert.deepEqual(rows?.[0], { id: 70, body: "note 70" });
    assert.deepEqual(
      { total, estimated, next_offset, primary_key },
      { total: 120, estimated: false, next_offset: 100, primary_key: ["id"] },
    );
    assert.deepEqual(columns?.[0], {
      name: "id",
      type: "integer",
      nullable: false,
      default: null,
      generated: null,
      identity: null,
      primary_key: true,
    });
  });

  test("names travel in the path, encoded", async () => {
    const { status, body, text } = await get(
      `/public/${encodeURIComponent("a/b c")}?sort=${encodeURIComponent("🚢 %")}`,
    );
    assert.equal(status, 200, text);
    assert.deepEqual(body["rows"], [{ "🚢 %": "9223372036854775807" }]);
  });

  test("wrong queries are told their field, and missing tables are missing", async () => {
    for (const query of ["sort=nope", "limit=0", "limit=501", "offset=-1", "dir=up", "q=%00", "database=a.b"]) {
      const { status, body } = await get(`/public/notes?${query}`);
      assert.equal(status, 400, query);
      assert.equal((body["details"] as { path: string }[])[0]?.path, query.split("=")[0]);
    }
    for (const table of [
      "/public/nope",
      "/nope/notes",
      "/pg_catalog/pg_class",
      `/public/${"x".repeat(300)}`,
      "/public/%00",
    ])
      assert.equal((await get(table)).status, 404, table);
    assert.equal((await get("?database=postgres")).status, 404);
    assert.equal((await get("?database=never_made")).status, 404);
  });

  test("an owner adds and deletes a row, and the activity names it without its values", async () => {
    const added = await api.call("POST", path("/public/notes/rows"), {
      token: org.owner,
      body: { values: { id: 500, body: "planted" } },
    });
    assert.deepEqual([added.status, added.body], [201, { row: { id: 500, body: "planted" }, cut: [] }]);
    const again = await api.call("POST", path("/public/notes/rows"), {
      token: org.owner,
      body: { values: { id: 500 } },
    });
    assert.equal(again.status, 409);
    assert.equal(again.body["code"], "conflict");
    const change = (values: unknown, version?: string) =>
      api.call("PATCH", path("/public/notes/rows"), {
        token: org.owner,
        body: { key: { id: 500 }, values, ...(version === undefined ? {} : { version }) },
      });
    const changed = await change({ body: "planted again" });
    assert.deepEqual([changed.status, changed.body], [200, { row: { id: 500, body: "planted again" }, cut: [] }]);
    assert.equal((await change({ body: "too late" }, "1")).body["code"], "conflict");
    const remove = () =>
      api.call("DELETE", path("/public/notes/rows"), { token: org.owner, body: { key: { id: 500 } } });
    assert.equal((await remove()).status, 204);
    assert.equal((await remove()).status, 404);
    const rows = await api.database.db
      .selectFrom("activity")
      .select(["action", "target", "detail"])
      .where("action", "like", "data.%")
      .execute();
    assert.deepEqual(
      rows.map(({ action, target }) => [action, target]),
      [
        ["data.inserted", "public.notes"],
        ["data.updated", "public.notes"],
        ["data.deleted", "public.notes"],
      ],
    );
    assert.ok(!JSON.stringify(rows).includes("planted"));
  });

  test("rows are an owner's to change, and deletions by an agent wait for a human", async () => {
    const body = { values: { id: 900 } };
    assert.equal((await api.call("POST", path("/public/notes/rows"), { token: org.member, body })).status, 403);
    assert.equal(
      (await api.call("DELETE", path("/public/notes/rows"), { token: org.member, body: { key: { id: 1 } } })).status,
      403,
    );
    const change = { key: { id: 1 }, values: { body: "changed" } };
    assert.equal(
      (await api.call("PATCH", path("/public/notes/rows"), { token: org.member, body: change })).status,
      403,
    );
    const agent = await testToken(api.database.db, org.id, { role: "owner", approval_mode: true });
    assert.equal(
      (await api.call("PATCH", path("/public/notes/rows"), { token: agent.text, body: change })).status,
      403,
    );
    assert.equal(
      (await api.call("DELETE", path("/public/notes/rows"), { token: agent.text, body: { key: { id: 1 } } })).status,
      403,
    );
    assert.equal(((await get("/public/notes?q=note 1&limit=1")).body["rows"] as unknown[]).length, 1);
  });

  test("nobody is asked to approve the deletion of what is not there, and a dryRun says so too", async () => {
    const agent = await testToken(api.database.db, org.id, { role: "owner", approval_mode: true });
    const cases = [
      [path("/public/never/rows"), { id: 1 }, 404],
      [path("/public/notes/rows"), { id: 100_000 }, 404],
      [path("/public/notes/rows"), { body: "note 1" }, 400],
      [path("/public/notes/rows"), { id: "one" }, 400],
    ] as const;
    const pending = () => api.database.db.selectFrom("approval").select("id").execute();
    const before = await pending();
    for (const [rows, key, status] of cases) {
      const asked = await api.call("DELETE", rows, { token: agent.text, body: { key } });
      const dryRunResult = await api.call("DELETE", `${rows}?dry_run=true`, { token: org.owner, body: { key } });
      assert.deepEqual([asked.status, dryRunResult.status], [status, status], asked.text);
    }
    assert.deepEqual(await pending(), before);
  });

  test("a row may be 1 MiB of JSON and no more", async () => {
    const post = (letters: number) =>
      api.call("POST", path("/public/notes/rows"), {
        token: org.owner,
        body: { values: { id: letters, body: "x".repeat(letters) } },
      });
    const large = await post(1_000_000);
    assert.equal(large.status, 201, large.text.slice(0, 200));
    assert.deepEqual(large.body["cut"], ["body"]);
    assert.equal((await post(1_048_576)).status, 413);
  });

  test("bodies are checked before the database is asked", async () => {
    for (const body of [{}, { values: [] }, { values: "x" }, { values: null }, { values: {}, more: 1 }])
      assert.equal(
        (await api.call("POST", path("/public/notes/rows"), { token: org.owner, body })).status,
        400,
        JSON.stringify(body),
      );
  });

  test("a function that ignores cancellation answers 504, and its session is ended", async () => {
    const { status, body } = await get("/public/deaf_view");
    assert.deepEqual([status, body["code"]], [504, "query_timeout"]);
    const sessions = "SELECT FROM pg_stat_activity WHERE application_name = 'berth browser'";
    await eventually(async () => (await application.query(sessions)).rows.length === 0, "the session has ended");
  });

  test("a further database of the project is read by its name, and only read", async () => {
    await host.createDatabase(spec, "restored_1");
    assert.equal(
      (await get("?database=restored_1")).status,
      404,
      "a name that no row knows, such as a scratch database",
    );
    const restored = { org_id: org.id, project_id: project.id, name: "restored_1", backup_id: null };
    await api.database.db.transaction().execute((tx) => insertRestored(tx, restored));
    assert.deepEqual((await get("?database=restored_1")).body["tables"], []);
    assert.equal((await get("/public/notes?database=restored_1")).status, 404);
    await host.dropDatabase(spec, "restored_1");
  });

  const query = (sql: string, token = org.member) =>
    api.call("POST", "/v1/projects/demo/database/query", { token, body: { sql } });

  test("a member reads with a statement of their own, and so does a token that may only read", async () => {
    const reader = await testToken(api.database.db, org.id, { role: "member", scopes: ["data:read"] });
    const sql = `select id as x, body as x, id::bigint, '{"a": 1.50}'::jsonb, null, repeat('x', 5000), '\\x00ff'::bytea, id > 1
      from notes where id < 3 order by id`;
    const { status, body, text } = await query(sql, reader.text);
    assert.equal(status, 200, text);
    const columns = body["columns"] as { name: string; type: string }[];
    assert.deepEqual(
      columns.map(({ name, type }) => `${name} ${type}`),
      [
        "x integer",
        "x text",
        "id bigint",
        "jsonb jsonb",
        "?column? text",
        "repeat text",
        "bytea bytea",
        "?column? boolean",
      ],
    );
    const rows = body["rows"] as unknown[][];
    assert.deepEqual(rows[1], [2, "note 2", "2", { a: 1.5 }, null, "x".repeat(4096), "\\x00ff", true]);
    assert.ok(text.includes('{"a":1.50}'));
    assert.deepEqual(
      body["cut"],
      [0, 1].map((row) => ({ row, columns: [5] })),
    );
    assert.equal(body["more"], false);
  });

  test("explain, show, values and with are statements, and a result has 500 rows at most", async () => {
    for (const sql of [
      "explain select * from notes",
      "show work_mem",
      "values (1)",
      "with a as (select 1) select * from a;",
    ])
      assert.equal((await query(sql)).status, 200, sql);
    const { body } = await query("select generate_series(1, 100000000)");
    assert.deepEqual([(body["rows"] as unknown[]).length, body["more"]], [500, true]);
    const exact = await query("select * from generate_series(1, 500)");
    assert.deepEqual([(exact.body["rows"] as unknown[]).length, exact.body["more"]], [500, false]);
    const wide = await query("select repeat('w', 4000) from generate_series(1, 2000)");
    assert.equal(wide.body["more"], true);
    const wider = await query(
      "select repeat('w', 4000), repeat('w', 4000), repeat('w', 4000) from generate_series(1, 400)",
    );
    assert.ok(wider.body["more"] === true && wider.text.length < 3 * 1024 * 1024);
  });

  test("what is wrong with a statement is said, with its SQLSTATE and place", async () => {
    const cases = [
      ["selec 1", /syntax error at or near "selec" \(SQLSTATE 42601, at character 1\)/],
      ["select nope from notes", /column "nope" does not exist \(SQLSTATE 42703/],
      ["select 1 / 0", /22012/],
      ["select 1; select 2", /more than one statement/],
      ["commit; delete from notes", /more than one statement/],
    ] as const;
    for (const [sql, expected] of cases) {
      const { status, body } = await query(sql);
      assert.deepEqual([status, body["code"]], [400, "invalid_request"], sql);
      assert.match(String(body["error"]), expected);
    }
    assert.equal((await query("")).status, 400);
    assert.equal((await query("select 1 -- ".padEnd(70_000, "x"))).status, 400);
  });

  // With the rights of the application's own role, each of these would change or end something.
  const hostile = [
    "delete from notes",
    "with gone as (delete from notes returning *) select * from gone",
    "update notes set body = 'x'",
    "truncate notes",
    "drop table notes",
    "create table loot (a int)",
    "create temporary table loot (a int)",
    "create function loot() returns int language sql as 'select 1'",
    "select * into loot from notes",
    "select * from notes for update",
    "select write_note()",
    "select write_note_as_owner()",
    "call write_and_commit()",
    "do $$ begin set transaction read write; delete from notes; end $$",
    "do $$ begin perform set_config('transaction_read_only', 'off', false); delete from notes; end $$",
    "do $$ begin commit; delete from notes; end $$",
    "do $$ begin rollback; set transaction read write; delete from notes; commit; end $$",
    "set transaction read write",
    "select set_config('transaction_read_only', 'off', false), write_note()",
    "select setval('numbers', 99)",
    "select nextval('numbers')",
    "copy notes to program 'touch /tmp/loot'",
    "copy notes to '/tmp/loot'",
    "copy notes from stdin",
    "copy (select 1) to stdout",
    "select * from dblink('', 'delete from notes') as t(a int)",
    "create extension dblink",
    "select pg_read_file('/etc/passwd')",
    "select lo_import('/etc/passwd')",
    "select lo_from_bytea(4711, 'x')",
    "lock table notes in access exclusive mode",
    "select pg_terminate_backend(pid) from pg_stat_activity where usename <> current_user",
    "alter role current_user set default_transaction_read_only = off",
    "set session authorization default",
    "set session characteristics as transaction read write",
    "prepare transaction 'loot'",
    "commit and chain",
    "rollback",
    "notify loot",
    "select query_to_xml('delete from notes', true, true, '')",
    "grant all on notes to public",
    "security label on table notes is 'x'",
    "vacuum notes",
    "analyze notes",
    "refresh materialized view nothing",
    "reindex table notes",
    "checkpoint",
    "load 'auto_explain'",
  ];

  test("no statement changes anything, whatever it is", async () => {
    await application.query(`CREATE SEQUENCE numbers; CREATE EXTENSION IF NOT EXISTS plpgsql;
      CREATE FUNCTION write_note() RETURNS int LANGUAGE sql AS 'INSERT INTO public.notes VALUES (-1) RETURNING id';
      CREATE FUNCTION write_note_as_owner() RETURNS int LANGUAGE sql SECURITY DEFINER AS 'INSERT INTO public.notes VALUES (-2) RETURNING id';
      CREATE PROCEDURE write_and_commit() LANGUAGE plpgsql AS $$ BEGIN COMMIT; INSERT INTO public.notes VALUES (-3); COMMIT; END $$`);
    const state = async () =>
      (
        await application.query(`SELECT (SELECT md5(string_agg(n::text, ',' ORDER BY id)) FROM notes n) AS notes, (SELECT last_value FROM numbers) AS last,
          (SELECT count(*) FROM pg_class) AS relations, (SELECT count(*) FROM pg_proc) AS functions, (SELECT count(*) FROM pg_largeobject_metadata) AS large,
          (SELECT string_agg(rolname || coalesce(rolconfig::text, ''), ',' ORDER BY rolname) FROM pg_roles) AS roles`)
      ).rows as unknown[];
    await query("select 1");
    const before = await state();
    for (const sql of hostile) {
      const { status, text } = await query(sql);
      assert.ok(status < 500, `${sql}: ${text}`);
      assert.deepEqual(await state(), before, sql);
    }
  });

  test("a statement keeps no lock, ends with its time, and sends no more than it may", async () => {
    await query("select pg_advisory_lock(7)");
    // The table browser's session ends a moment after its answer.
    const tryLock = () => application.query<{ free: boolean }>("SELECT pg_try_advisory_lock(7) AS free");
    await eventually(async () => (await tryLock()).rows[0]?.free, "the lock is free");
    const [slept, deaf] = await Promise.all([
      query("select set_config('statement_timeout', '0', false), pg_sleep(60)"),
      query("select public.deaf()"),
    ]);
    // On a busy machine the statement may time out before it reaches the size limit.
    const huge = await eventually(async () => {
      const answer = await query("select repeat('x', 1000000) from generate_series(1, 300)");
      return answer.status !== 504 && answer;
    }, "the limit is reached within the statement's time");
    assert.deepEqual([slept.status, slept.body["code"]], [504, "query_timeout"]);
    assert.deepEqual([deaf.status, deaf.body["code"]], [504, "query_timeout"]);
    assert.deepEqual([huge.status, huge.body["code"]], [409, "conflict"]);
    assert.match(String(huge.body["error"]), /larger than 64 MiB/);
  });

  test("without a database there is nothing to browse", async () => {
    await testProject(api.platform, org, "bare");
    const { status, body } = await api.call("GET", "/v1/projects/bare/data/tables", { token: org.member });
    assert.deepEqual([status, body["code"]], [404, "no_database"]);
  });
});
