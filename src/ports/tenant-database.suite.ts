import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { eventually } from "../../test/support/eventually.ts";
import type {
  Looked,
  RowChange,
  RowsPage,
  RowsQuery,
  ShownRow,
  TablesQuery,
  TenantDatabase,
  TenantLogin,
} from "./tenant-database.ts";

/** What an adapter's test provides to the suites. */
export interface TenantDatabaseFixture {
  readonly database: TenantDatabase;
  readonly login: TenantLogin;
  /** Runs SQL as the project's role, as its application does. */
  sql(text: string): Promise<readonly Record<string, unknown>[]>;
  /** Runs a statement of a minute over a further connection of the project's role. */
  sleep(): Promise<unknown>;
  close(): Promise<void>;
}

/** Short forms of the port's calls for the suites: everything but the names has a default. */
export class Asking {
  readonly fixture: TenantDatabaseFixture;
  constructor(fixture: TenantDatabaseFixture) {
    this.fixture = fixture;
  }
  async tables(query: Partial<TablesQuery> = {}) {
    const { database, login } = this.fixture;
    return found(await database.listTables(login, { limit: 500, offset: 0, dir: "asc", sort: "schema", ...query }));
  }
  look(table: string, query: Partial<RowsQuery> = {}, schema = "public"): Promise<Looked<RowsPage>> {
    const { database, login } = this.fixture;
    return database.readRows(login, { schema, table }, { limit: 50, offset: 0, dir: "asc", ...query });
  }
  async rows(table: string, query: Partial<RowsQuery> = {}, schema = "public"): Promise<readonly unknown[]> {
    return found(await this.look(table, query, schema)).rows.map(({ row }) => row);
  }
  insert(table: string, values: Record<string, unknown>, schema = "public"): Promise<Looked<ShownRow>> {
    return this.fixture.database.insertRow(this.fixture.login, { schema, table }, values);
  }
  update(table: string, change: RowChange): Promise<Looked<ShownRow>> {
    return this.fixture.database.updateRow(this.fixture.login, { schema: "public", table }, change);
  }
  /** Checks the key first, because the check must have the same outcome as the deletion. */
  async delete(table: string, key: Record<string, unknown>, schema = "public"): Promise<Looked<null>> {
    const { database, login } = this.fixture;
    const seen = await database.findRow(login, { schema, table }, key);
    const deleted = await database.deleteRow(login, { schema, table }, key);
    if (["done", "missing", "invalid"].includes(deleted.outcome)) assert.deepEqual(seen, deleted);
    return deleted;
  }
}

/** Returns the result of a call; fails the test if there is none. */
export function found<T>(looked: Looked<T>): T {
  assert.ok(looked.outcome === "done", JSON.stringify(looked));
  return looked.found;
}

/** The rules for reading and changing rows, with every type and oddity that an honest schema may have. `make` is called once. */
export function tenantDatabaseSuite(make: () => Promise<TenantDatabaseFixture>): void {
  describe("tenant database", () => {
    let ask: Asking;
    const sql = (text: string) => ask.fixture.sql(text);
    before(async () => {
      ask = new Asking(await make());
    });
    after(() => ask.fixture.close());

    describe("the server's own views", () => {
      const connections = async () => found(await ask.fixture.database.listConnections(ask.fixture.login));
      const own = async () => (await sql("SELECT pg_backend_pid() AS pid"))[0]?.["pid"] as number;

      it("show what each connection does, long statements cut, and not the one that asks", async () => {
        await sql(`SELECT '${"x".repeat(300)}'`);
        const { connections: all, limit, more } = await connections();
        assert.deepEqual([all.length, limit, more], [1, 20, false]);
        const [mine] = all;
        assert.deepEqual([mine?.pid, mine?.kind, mine?.state], [await own(), "application", "idle"]);
        assert.equal(mine?.query?.length, 200);
        for (const at of [mine?.connected_at, mine?.since]) assert.match(at ?? "", /^\d{4}-.*\.\d{3}Z$/);
      });

      it("tell the table browser's own connections from the application's", async () => {
        const both = await Promise.all([connections(), connections(), connections()]);
        const kinds = both.flatMap(({ connections: all }) => all.map(({ application, kind }) => [application, kind]));
        for (const [application, kind] of kinds) assert.equal(kind === "platform", application === "berth browser");
      });

      it("end a connection of the project's role, and no other", async () => {
        const { database, login } = ask.fixture;
        const sleeping = assert.rejects(ask.fixture.sleep(), { code: "57P01" });
        const pid = await eventually(
          async () => (await connections()).connections.find(({ state }) => state === "active")?.pid,
          "the statement runs",
        );
        assert.equal(found(await database.endConnection(login, pid)), null);
        await sleeping;
        for (const other of [pid, 1, 2_147_483_647, 9_999_999_999])
          assert.equal((await database.endConnection(login, other)).outcome, "missing", String(other));
      });

      it("list the extensions: what is there, what is available, and who may create it", async () => {
        const listed = found(await ask.fixture.database.listExtensions(ask.fixture.login));
        const named = (name: string) => listed.find((each) => each.name === name);
        assert.equal(listed[0]?.name, "plpgsql");
        assert.ok(named("plpgsql")?.version !== null);
        assert.deepEqual([named("pgcrypto")?.version, named("pgcrypto")?.creator], [null, "project"]);
        assert.equal(named("dblink")?.creator, "operator");
        await sql("CREATE EXTENSION pgcrypto");
        const after = found(await ask.fixture.database.listExtensions(ask.fixture.login));
        assert.ok(after.find(({ name }) => name === "pgcrypto")?.version);
      });
    });

    describe("tables", () => {
      before(async () => {
        await sql(`CREATE SCHEMA kinds;
          CREATE TABLE kinds.plain (id int PRIMARY KEY, body text);
          INSERT INTO kinds.plain SELECT n, repeat('x', 100) FROM generate_series(1, 500) n;
          CREATE VIEW kinds.seen AS SELECT * FROM kinds.plain;
          CREATE MATERIALIZED VIEW kinds.kept AS SELECT * FROM kinds.plain;
          CREATE TABLE kinds.parted (id int, at date) PARTITION BY RANGE (id);
          CREATE TABLE kinds.part_one PARTITION OF kinds.parted FOR VALUES FROM (0) TO (1000);
          INSERT INTO kinds.parted SELECT n, '2020-01-01' FROM generate_series(1, 300) n;
          CREATE SEQUENCE kinds.not_a_table; CREATE TYPE kinds.neither AS (a int);
          CREATE TEMP TABLE nobody_else_sees (a int)`);
        await sql("ANALYZE");
      });

      it("every kind is listed, with rows and size where it stores some", async () => {
        const { tables, total } = await ask.tables({ q: "kinds." });
        assert.deepEqual(
          tables.map(({ schema, name, kind, estimated_rows }) => [schema, name, kind, estimated_rows]),
          [
            ["kinds", "kept", "materialized_view", 500],
            ["kinds", "part_one", "partition", 300],
            ["kinds", "parted", "partitioned_table", 300],
            ["kinds", "plain", "table", 500],
            ["kinds", "seen", "view", null],
          ],
        );
        assert.equal(total, 5);
        for (const { kind, size_bytes } of tables) assert.equal(kind === "view", size_bytes === null);
      });

      it("PostgreSQL's own schemas are hidden, and cannot be read by name", async () => {
        const { tables } = await ask.tables();
        assert.deepEqual(
          tables.filter(({ schema }) => /^(pg_|information_schema)/.test(schema)),
          [],
        );
        for (const [schema, table] of [
          ["pg_catalog", "pg_class"],
          ["information_schema", "tables"],
          ["pg_toast", "x"],
        ] as const)
          assert.deepEqual(await ask.look(table, {}, schema), { outcome: "missing" });
      });

      it("they are sorted, searched and paged", async () => {
        const bySize = await ask.tables({ q: "KINDS", sort: "size_bytes", dir: "desc" });
        const sizes = bySize.tables.map(({ size_bytes }) => size_bytes ?? -1);
        assert.deepEqual(
          sizes,
          [...sizes].sort((a, b) => b - a),
        );
        const page = await ask.tables({ q: "kinds.", limit: 2, offset: 2 });
        assert.deepEqual(
          page.tables.map(({ name }) => name),
          ["parted", "plain"],
        );
        assert.equal(page.total, 5);
        assert.equal((await ask.tables({ q: "kinds.", offset: 100 })).total, 5);
        assert.equal((await ask.tables({ q: "k_nds" })).total, 0);
      });

      it("rows of every kind can be read", async () => {
        for (const table of ["kept", "part_one", "parted", "plain", "seen"]) {
          const page = found(await ask.look(table, { limit: 3, sort: "id", dir: "desc" }, "kinds"));
          assert.equal(page.rows.length, 3, table);
          assert.equal(page.more, true);
          assert.equal(page.estimated, false);
          assert.equal(page.total, table.startsWith("part") ? 300 : 500);
        }
      });
    });

    describe("columns", () => {
      it("types, defaults, generated and identity columns are told apart", async () => {
        await sql(`CREATE SCHEMA "Other Schema"; CREATE TYPE "Other Schema"."Mood of day" AS ENUM ('good', 'bad');
          CREATE DOMAIN public.short AS varchar(5) NOT NULL CHECK (value <> 'never');
          CREATE TABLE described (
            id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, other int GENERATED BY DEFAULT AS IDENTITY,
            name varchar(20) NOT NULL DEFAULT 'it''s', price numeric(10,2), twice numeric GENERATED ALWAYS AS (price * 2) STORED,
            mood "Other Schema"."Mood of day"[], code public.short, gone text, at timestamptz(3) DEFAULT now());
          ALTER TABLE described DROP COLUMN gone`);
        const { columns, primary_key } = found(await ask.look("described"));
        assert.deepEqual(primary_key, ["id"]);
        const plain = { nullable: true, default: null, generated: null, identity: null };
        assert.deepEqual(columns, [
          { ...plain, name: "id", type: "bigint", nullable: false, identity: "always" },
          { ...plain, name: "other", type: "integer", nullable: false, identity: "by_default" },
          {
            ...plain,
            name: "name",
            type: "character varying(20)",
            nullable: false,
            default: "'it''s'::character varying",
          },
          { ...plain, name: "price", type: "numeric(10,2)" },
          { ...plain, name: "twice", type: "numeric", generated: "stored" },
          { ...plain, name: "mood", type: `"Other Schema"."Mood of day"[]` },
          { ...plain, name: "code", type: "public.short", nullable: false },
          { ...plain, name: "at", type: "timestamp(3) with time zone", default: "now()" },
        ]);
      });

      it("a table without columns, and one with 1,600, are tables", async () => {
        const names = Array.from({ length: 1600 }, (_, index) => `c${index}`);
        await sql(`CREATE TABLE nothing (); INSERT INTO nothing DEFAULT VALUES; INSERT INTO nothing DEFAULT VALUES;
          CREATE TABLE wide (${names.map((name) => `${name} int DEFAULT 1`).join(", ")}); INSERT INTO wide DEFAULT VALUES`);
        assert.deepEqual(await ask.rows("nothing"), [{}, {}]);
        assert.deepEqual(found(await ask.insert("nothing", {})).row, {});
        assert.deepEqual(await ask.rows("wide"), [Object.fromEntries(names.map((name) => [name, 1]))]);
        const values = Object.fromEntries(names.map((name) => [name, 2]));
        assert.deepEqual(found(await ask.insert("wide", values)).row, values);
      });

      it("names may be anything that PostgreSQL takes", async () => {
        const names = [
          'a"b',
          "a'b",
          "select",
          "With Space",
          "0zero",
          "UPPER",
          "🚢",
          "é".repeat(31),
          "x".repeat(63),
          "a\\b",
          "%s",
          "$1",
          "a.b",
          "a/b",
          "__proto__",
          "constructor",
          ";--",
          "\n",
          "ctid2",
        ];
        for (const name of names) {
          const quoted = `"${name.replaceAll('"', '""')}"`;
          await sql(
            `CREATE SCHEMA ${quoted}; CREATE TABLE ${quoted}.${quoted} (${quoted} text PRIMARY KEY, "other ""column" int); INSERT INTO ${quoted}.${quoted} VALUES ('x', 1)`,
          );
          const page = found(await ask.look(name, { sort: name, q: "X" }, name));
          const expected = Object.fromEntries([
            [name, "x"],
            ['other "column', 1],
          ]);
          assert.deepEqual(page.rows, [{ row: expected, cut: [] }], name);
          const added = Object.fromEntries([
            [name, "y"],
            ['other "column', 2],
          ]);
          assert.deepEqual(found(await ask.insert(name, added, name)).row, added);
          assert.equal(found(await ask.delete(name, Object.fromEntries([[name, "y"]]), name)), null);
          assert.equal((await ask.tables({ q: `${name}.${name}` })).total, 1, name);
        }
        assert.deepEqual(await ask.look("x".repeat(64), {}, "x".repeat(63)), { outcome: "missing" });
      });
    });

    describe("values", () => {
      it("are exact", async () => {
        await sql(`CREATE TYPE pair AS (a int, b text); CREATE DOMAIN age AS int; CREATE DOMAIN old AS age;
          CREATE TABLE exact (small smallint, whole int, big bigint, num numeric, real real, double float8, yes bool, money money, at timestamp, atz timestamptz,
            day date, clock time, long interval, js json, jb jsonb, bytes bytea, bits bit(3), uid uuid, words text[], span int4range, pair pair, empty pair,
            age old, doc xml, padded char(4), net inet, nothing text, ch "char", lsn pg_lsn, vec tsvector);
          INSERT INTO exact VALUES (-32768, 2147483647, 9223372036854775807, 123456789012345678901234567890.12345678901234567890, '0.1', 'NaN', true, 12.5,
            'infinity', '2024-02-29 12:34:56.123456+02', '-infinity', '24:00:00', '1 year 2 mons -3 days 04:05:06.7',
            '{"b": 1.10, "a": 12345678901234567890, "__proto__": 1}', '[1e400, null, "x"]', '\\x00ff', B'101', 'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11',
            '{"a,b",NULL,"c\\"d"}', '[1,5)', ROW(1, 'x y'), ROW(NULL, NULL), 7, '<a b="1">&amp;</a>', 'ab', '10.0.0.1/8', NULL, 'x', '16/B374D848', 'a:1 b:2')`);
        const [row] = (await ask.rows("exact")) as [Record<string, unknown>];
        const { js, jb, ...rest } = row;
        assert.deepEqual(rest, {
          ...{
            small: -32768,
            whole: 2147483647,
            big: "9223372036854775807",
            num: "123456789012345678901234567890.12345678901234567890",
          },
          ...{
            real: "0.1",
            double: "NaN",
            yes: true,
            money: "$12.50",
            at: "infinity",
            atz: "2024-02-29 10:34:56.123456+00",
          },
          ...{
            day: "-infinity",
            clock: "24:00:00",
            long: "1 year 2 mons -3 days +04:05:06.7",
            bytes: "\\x00ff",
            bits: "101",
          },
          ...{
            uid: "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
            words: '{"a,b",NULL,"c\\"d"}',
            span: "[1,5)",
            pair: '(1,"x y")',
            empty: "(,)",
          },
          ...{
            age: 7,
            doc: '<a b="1">&amp;</a>',
            padded: "ab  ",
            net: "10.0.0.1/8",
            nothing: null,
            ch: "x",
            lsn: "16/B374D848",
            vec: "'a':1 'b':2",
          },
        });
        assert.equal(JSON.stringify(js), '{"b":1.10,"a":12345678901234567890,"__proto__":1}');
        assert.equal(JSON.stringify(jb), `[1${"0".repeat(400)},null,"x"]`);
      });

      it("JSON that is nested too deep for its readers is text", async () => {
        const deep = `${"[".repeat(1500)}${"]".repeat(1500)}`;
        await sql(`CREATE TABLE deep AS SELECT '${deep}'::json AS js`);
        assert.deepEqual(await ask.rows("deep"), [{ js: deep }]);
      });

      it("do not depend on the settings of the role or the database", async () => {
        await sql(
          `CREATE TABLE styled AS SELECT '2024-02-03'::date AS day, '\\xff'::bytea AS bytes, '1 day'::interval AS long, '2024-01-01Z'::timestamptz AS at, 0.1::float8 AS num`,
        );
        const [{ role }] = (await sql("SELECT current_user AS role")) as [{ role: string }];
        const styles = {
          DateStyle: "'German'",
          bytea_output: "'escape'",
          IntervalStyle: "'sql_standard'",
          TimeZone: "'Asia/Tokyo'",
          extra_float_digits: "-10",
          search_path: "public",
          standard_conforming_strings: "off",
        };
        const all = (verb: (name: string, value: string) => string) =>
          sql(
            Object.entries(styles)
              .map(([name, value]) => `ALTER ROLE "${role}" ${verb(name, value)}`)
              .join("; "),
          );
        await all((name, value) => `SET ${name} = ${value}`);
        const rows = await ask.rows("styled", { q: "\\" });
        assert.deepEqual(rows, []);
        assert.deepEqual(await ask.rows("styled"), [
          { day: "2024-02-03", bytes: "\\xff", long: "1 day", at: "2024-01-01 00:00:00+00", num: "0.1" },
        ]);
        await all((name) => `RESET ${name}`);
      });

      it("long ones are cut at 4 KiB, between letters, and marked", async () => {
        await sql(`CREATE TABLE long AS SELECT 1 AS id, repeat('x', 4096) AS fits, repeat('x', 4097) AS not_quite, repeat('é', 3000) AS letters,
          decode(repeat('ab', 2047), 'hex') AS bytes, decode(repeat('ab', 1000000), 'hex') AS more_bytes, json_build_object('a', repeat('x', 5000)) AS js, array_fill(1, ARRAY[5000]) AS many`);
        const [shown] = found(await ask.look("long")).rows as [ShownRow];
        assert.deepEqual(shown.cut, ["not_quite", "letters", "more_bytes", "js", "many"]);
        const row = shown.row as Record<string, string>;
        assert.equal(row["fits"], "x".repeat(4096));
        assert.equal(row["not_quite"], "x".repeat(4096));
        assert.equal(row["letters"], "é".repeat(2048));
        assert.equal(row["bytes"], `\\x${"ab".repeat(2047)}`);
        assert.equal(row["more_bytes"], `\\x${"ab".repeat(2047)}`);
      });

      it("a page ends early when its rows are very large", async () => {
        await sql(
          `CREATE TABLE heavy AS SELECT n AS id, ${Array.from({ length: 100 }, (_, index) => `repeat('x', 5000) AS c${index}`).join(", ")} FROM generate_series(1, 200) n`,
        );
        const page = found(await ask.look("heavy", { limit: 200 }));
        // Rows of 400 KiB: the one that reaches 2 MiB is the last.
        assert.equal(page.rows.length, 6);
        assert.equal(page.more, true);
        const next = found(await ask.look("heavy", { limit: 1, offset: page.rows.length }));
        assert.equal(next.rows[0]?.row["id"], page.rows.length + 1);
      });
    });

    describe("order, search and count", () => {
      before(async () => {
        await sql(`CREATE TABLE people (id int PRIMARY KEY, name text, team text COLLATE "C", born date, doc json, mood text);
          INSERT INTO people SELECT n, CASE WHEN n % 10 = 0 THEN 'per%cent_' || n ELSE 'Person ' || n END, 'team ' || n % 3, NULL, '{"k": "v"}', CASE WHEN n < 5 THEN 'Ärger' END FROM generate_series(1, 100) n`);
      });
      const ids = async (query: Partial<RowsQuery>) =>
        ((await ask.rows("people", query)) as { id: number }[]).map(({ id }) => id);

      it("without a sort the primary key orders, in either direction", async () => {
        assert.deepEqual(await ids({ limit: 3 }), [1, 2, 3]);
        assert.deepEqual(await ids({ limit: 3, dir: "desc" }), [100, 99, 98]);
      });

      it("equal values are ordered by the primary key, so pages neither repeat nor miss rows", async () => {
        const pages = await Promise.all([0, 30, 60, 90].map((offset) => ids({ sort: "team", limit: 30, offset })));
        assert.deepEqual(
          pages.flat().sort((a, b) => a - b),
          Array.from({ length: 100 }, (_, index) => index + 1),
        );
      });

      it("without a key, sorted pages are stable as well", async () => {
        await sql("CREATE TABLE keyless AS SELECT n % 2 AS half, n FROM generate_series(1, 90) n");
        const pages = await Promise.all(
          [0, 30, 60].map((offset) => ask.rows("keyless", { sort: "half", limit: 30, offset })),
        );
        assert.equal(new Set(pages.flat().map((row) => (row as { n: number }).n)).size, 90);
      });

      it("only a column can be sorted by, and one whose type has an order", async () => {
        for (const sort of ["nope", "id; DROP TABLE people", 'id"', "1", "ctid", "tableoid"])
          assert.equal((await ask.look("people", { sort })).outcome, "invalid", sort);
        assert.deepEqual(await ask.look("people", { sort: "doc" }), {
          outcome: "invalid",
          field: "sort",
          problem: "is a column whose type has no order",
        });
      });

      it("a search is for the letters themselves, whatever their case", async () => {
        assert.deepEqual(await ids({ q: "%CENT_" }), [10, 20, 30, 40, 50, 60, 70, 80, 90, 100]);
        assert.deepEqual(await ids({ q: "person 9", limit: 2 }), [9, 91]);
        assert.deepEqual(await ids({ q: "äRGER" }), [1, 2, 3, 4]);
        assert.deepEqual(await ids({ q: "Person _" }), []);
        assert.deepEqual(await ids({ q: "\\" }), []);
        assert.deepEqual(await ids({ q: "' OR 1=1 --" }), []);
        assert.equal((await ids({ q: '"k": "v"', limit: 500 })).length, 100);
      });

      it("small tables are counted, and large ones estimated", async () => {
        await sql("CREATE TABLE large AS SELECT n FROM generate_series(1, 60000) n");
        await sql("ANALYZE large");
        const large = found(await ask.look("large"));
        assert.equal(large.estimated, true);
        assert.ok(Math.abs((large.total ?? 0) - 60_000) < 6000);
        const { total, estimated, more } = found(await ask.look("people", { q: "team 1", limit: 5 }));
        assert.deepEqual({ total, estimated, more }, { total: 34, estimated: false, more: true });
        assert.equal(found(await ask.look("people", { offset: 1000 })).total, 100);
      });
    });
  });
}
