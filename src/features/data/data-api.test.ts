import assert from "node:assert/strict";
import { dirname } from "node:path";
import { after, before, describe, test } from "node:test";
import pg from "pg";
import { createLocalPostgresHost } from "../../adapters/postgres-host-local/local-postgres-host.ts";
import { makeTestPlace, missingPart } from "../../adapters/postgres-host-local/test-fixture.ts";
import { createPostgresTenantDatabase } from "../../adapters/tenant-database-postgres/postgres-tenant-database.ts";
import type { DatabaseSpec, PostgresHost } from "../../ports/postgres-host.ts";
import { testProject } from "../../../test/support/things.ts";
import {
  testApi,
  testOrganization,
  testToken,
  type TestApi,
  type TestOrganization,
} from "../../../test/support/test-platform.ts";
import { databaseOf, requestDatabase, specOf } from "../database/database.ts";

describe("the table browser on a project's own instance", { skip: missingPart, timeout: 120_000 }, () => {
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
    const { port, socket_path } = await host.ensure(made);
    await api.database.db.updateTable("project_database").set({ status: "ready", port, socket_path }).execute();
    const user = { user: made.role_name, password: made.password, database: made.database_name };
    application = new pg.Client({ host: dirname(socket_path), port, ...user });
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
    const agent = await testToken(api.database.db, org.id, { role: "owner", approval_mode: true });
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
    for (let attempt = 0; attempt < 100; attempt += 1) {
      const { rows } = await application.query("SELECT FROM pg_stat_activity WHERE application_name = 'berth browser'");
      if (rows.length === 0) return;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    assert.fail("the session goes on");
  });

  test("a further database of the project is read by its name, and only read", async () => {
    await host.createDatabase(spec, "restored_1");
    assert.deepEqual((await get("?database=restored_1")).body["tables"], []);
    assert.equal((await get("/public/notes?database=restored_1")).status, 404);
    await host.dropDatabase(spec, "restored_1");
  });

  test("without a database there is nothing to browse", async () => {
    await testProject(api.platform, org, "bare");
    const { status, body } = await api.call("GET", "/v1/projects/bare/data/tables", { token: org.member });
    assert.deepEqual([status, body["code"]], [404, "no_database"]);
  });
});
