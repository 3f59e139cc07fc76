import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { Asking, found, type TenantDatabaseFixture } from "./tenant-database.suite.ts";

/** The rules for adding and deleting single rows. `make` is called once. */
export function tenantDatabaseChangesSuite(make: () => Promise<TenantDatabaseFixture>): void {
  describe("changes in a tenant database", () => {
    let ask: Asking;
    const sql = (text: string) => ask.fixture.sql(text);
    before(async () => {
      ask = new Asking(await make());
    });
    after(() => ask.fixture.close());

    describe("adding a row", () => {
      before(async () => {
        await sql(`CREATE TYPE colour AS ENUM ('red', 'green');
          CREATE DOMAIN positive AS int CHECK (value > 0);
          CREATE TABLE teams (id int PRIMARY KEY);
          INSERT INTO teams VALUES (1);
          CREATE TABLE members (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, email text UNIQUE, age positive, colour colour, team int REFERENCES teams,
            big bigint, num numeric(6,2), js jsonb, yes bool, short varchar(3), fixed char(2), bits bit(3), at timestamptz, tags text[], twice int GENERATED ALWAYS AS (age * 2) STORED,
            must text NOT NULL DEFAULT 'x', CONSTRAINT sane CHECK (email <> 'insane'), EXCLUDE USING btree (num WITH =))`);
      });
      const fieldOf = async (values: Record<string, unknown>) => {
        const looked = await ask.insert("members", values);
        return looked.outcome === "invalid" ? looked.field : looked;
      };
      const problemOf = async (values: Record<string, unknown>) => {
        const looked = await ask.insert("members", values);
        assert.ok(looked.outcome === "conflict", JSON.stringify(looked));
        return looked.problem;
      };

      it("answers with the row as it is stored", async () => {
        const values = {
          email: "a@b",
          age: 7,
          colour: "red",
          team: "1",
          big: "9007199254740993",
          num: 1.5,
          js: { a: [1, "x", null] },
          yes: true,
          short: "abc",
          fixed: "a",
          bits: "101",
          at: "2024-01-01T00:00:00Z",
          tags: '{"a b",c}',
        };
        const { row, cut } = found(await ask.insert("members", values));
        assert.deepEqual(row, {
          id: 1,
          ...values,
          team: 1,
          num: "1.50",
          fixed: "a ",
          at: "2024-01-01 00:00:00+00",
          tags: '{"a b",c}',
          twice: 14,
          must: "x",
        });
        assert.deepEqual(cut, []);
      });

      it("wrong values are named by their column, and nothing is added", async () => {
        const wrong: Record<string, unknown>[] = [
          ...[
            { nope: 1 },
            { ctid: "(0,1)" },
            { id: 5 },
            { twice: 5 },
            { age: "seven" },
            { age: 1.5 },
            { age: 3e9 },
            { age: true },
            { age: [] },
            { big: 2 ** 60 },
            { big: "9223372036854775808" },
          ],
          ...[
            { num: "100000" },
            { num: 0.1234567890123456 },
            { js: 2 ** 60 },
            { js: "\0" },
            { yes: 1 },
            { yes: "perhaps" },
            { short: "abcd" },
            { fixed: "abc" },
            { bits: "1" },
            { bits: "102" },
          ],
          ...[
            { at: "yesterday-ish" },
            { at: "2024-02-30" },
            { tags: ["a"] },
            { tags: "{" },
            { colour: "blue" },
            { email: 5 },
            { email: "a\0b" },
            { email: "\ud800" },
            { email: {} },
          ],
        ];
        for (const values of wrong)
          assert.equal(await fieldOf({ must: "y", ...values }), `values.${Object.keys(values)[0]}`);
        assert.equal((await ask.rows("members")).length, 1);
      });

      it("constraints refuse with their name and without anybody's values", async () => {
        assert.match(await problemOf({ email: "a@b" }), /^The unique constraint "members_email_key" forbids/);
        assert.match(await problemOf({ must: null }), /^The column "must" needs a value/);
        assert.match(await problemOf({ team: 99 }), /^The foreign key "members_team_fkey"/);
        assert.match(await problemOf({ email: "insane" }), /^The check "sane"/);
        assert.match(await problemOf({ age: -1 }), /^The check "positive_check"/);
        assert.match(await problemOf({ num: 1.5 }), /^The exclusion constraint "members_num_excl"/);
        for (const values of [{ email: "a@b" }, { team: 99 }]) assert.doesNotMatch(await problemOf(values), /a@b|99/);
      });

      it("a constraint that waits for the end of the transaction refuses as well", async () => {
        await sql("CREATE TABLE late (id int PRIMARY KEY, up int REFERENCES late DEFERRABLE INITIALLY DEFERRED)");
        const looked = await ask.insert("late", { id: 1, up: 2 });
        assert.equal(looked.outcome, "conflict");
        assert.deepEqual(await ask.rows("late"), []);
      });

      it("rows go through views that can pass them on, and nowhere else", async () => {
        await sql(
          "CREATE VIEW team_list AS SELECT * FROM teams; CREATE VIEW team_count AS SELECT count(*) FROM teams; CREATE MATERIALIZED VIEW team_copy AS SELECT * FROM teams",
        );
        assert.deepEqual(found(await ask.insert("team_list", { id: 2 })).row, { id: 2 });
        assert.equal((await ask.insert("team_count", { count: 2 })).outcome, "conflict");
        assert.equal((await ask.insert("team_copy", { id: 2 })).outcome, "conflict");
        assert.deepEqual(await ask.insert("nowhere", { id: 2 }), { outcome: "missing" });
      });
    });

    describe("changing a row", () => {
      before(async () => {
        await sql(`CREATE TABLE stock (id int PRIMARY KEY, label varchar(5) NOT NULL, n int, js jsonb, double int GENERATED ALWAYS AS (n * 2) STORED);
          INSERT INTO stock VALUES (1, 'one', 1), (2, 'two', 2); CREATE VIEW stock_view AS SELECT * FROM stock;
          CREATE TABLE parts (id int PRIMARY KEY, n int) PARTITION BY RANGE (id);
          CREATE TABLE parts_low PARTITION OF parts FOR VALUES FROM (0) TO (10); INSERT INTO parts VALUES (1, 1);
          CREATE TABLE kept_row (id int PRIMARY KEY, n int); INSERT INTO kept_row VALUES (1, 1);
          CREATE RULE no_change AS ON UPDATE TO kept_row DO INSTEAD NOTHING`);
      });
      const versionOf = async (table: string, at = 0) => found(await ask.look(table)).versions[at] ?? undefined;

      it("answers with the row as it is stored, null and JSON included", async () => {
        const looked = await ask.update("stock", { key: { id: 1 }, values: { label: "uno", n: null, js: [null] } });
        assert.deepEqual(found(looked).row, { id: 1, label: "uno", n: null, js: [null], double: null });
        assert.deepEqual(found(await ask.update("stock", { key: { id: 1 }, values: { n: "7" } })).row["double"], 14);
      });

      it("a row that has changed since it was read stays as it is", async () => {
        for (const table of ["stock", "parts"]) {
          const version = await versionOf(table);
          assert.match(version ?? "", /^\d+$/);
          await sql(`UPDATE ${table} SET n = 50 WHERE id = 1`);
          const late = await ask.update(table, { key: { id: 1 }, values: { n: 60 }, version });
          assert.equal(late.outcome, "conflict", table);
          assert.match((late as { problem: string }).problem, /has changed since/);
          const again = await ask.update(table, { key: { id: 1 }, values: { n: 60 }, version: await versionOf(table) });
          assert.equal(found(again).row["n"], 60);
        }
        assert.equal(await versionOf("stock_view"), undefined);
      });

      it("wrong keys and values are named, and nothing is changed", async () => {
        const cases = [
          [{ id: 1 }, { label: "longer" }, "values.label"],
          [{ id: 1 }, { n: "one" }, "values.n"],
          [{ id: 1 }, { double: 3 }, "values.double"],
          [{ id: 1 }, { nope: 3 }, "values.nope"],
          [{ id: 1 }, {}, "values"],
          [{ id: "one" }, { n: 3 }, "key.id"],
          [{ n: 60 }, { n: 3 }, "key"],
        ] as const;
        for (const [key, values, field] of cases) {
          const looked = await ask.update("stock", { key, values });
          assert.deepEqual([looked.outcome, "field" in looked && looked.field], ["invalid", field]);
        }
        assert.equal((await ask.update("stock", { key: { id: 1 }, values: { label: null } })).outcome, "conflict");
        assert.equal((await ask.update("stock", { key: { id: 1 }, values: { id: 2 } })).outcome, "conflict");
        assert.equal((await ask.update("stock", { key: { id: 9 }, values: { n: 3 } })).outcome, "missing");
        assert.equal((await ask.update("stock_view", { key: { id: 1 }, values: { n: 3 } })).outcome, "invalid");
        assert.equal((await ask.update("kept_row", { key: { id: 1 }, values: { n: 3 } })).outcome, "conflict");
        assert.deepEqual(await sql("SELECT id, n FROM stock ORDER BY id"), [
          { id: 1, n: 60 },
          { id: 2, n: 2 },
        ]);
      });

      it("a key that names two rows, as in inherited tables, changes none", async () => {
        await sql(`CREATE TABLE older (id int PRIMARY KEY, n int); CREATE TABLE younger () INHERITS (older);
          INSERT INTO older VALUES (1, 1); INSERT INTO younger VALUES (1, 1)`);
        assert.equal((await ask.update("older", { key: { id: 1 }, values: { n: 2 } })).outcome, "conflict");
        assert.deepEqual(await sql("SELECT DISTINCT n FROM older"), [{ n: 1 }]);
      });
    });

    describe("deleting a row", () => {
      it("takes exactly one row, by a whole key", async () => {
        await sql(`CREATE TABLE two_keys (a int, b text, c uuid NOT NULL UNIQUE, d int UNIQUE, e int NOT NULL, PRIMARY KEY (a, b));
          CREATE UNIQUE INDEX ON two_keys (e) WHERE e > 5; CREATE UNIQUE INDEX ON two_keys (lower(b), e);
          INSERT INTO two_keys SELECT n, 'b', gen_random_uuid(), n, n FROM generate_series(1, 10) n`);
        const { keys, rows } = found(await ask.look("two_keys"));
        assert.deepEqual(keys, [["a", "b"], ["c"]]);
        for (const key of [
          {},
          { a: 1 },
          { b: "b" },
          { d: 1 },
          { e: 7 },
          { a: 1, b: "b", c: "x" },
          { a: 1, b: null },
          { a: "one", b: "b" },
          { nope: 1 },
        ])
          assert.equal((await ask.delete("two_keys", key)).outcome, "invalid", JSON.stringify(key));
        assert.equal((await ask.delete("two_keys", { a: 1, b: "c" })).outcome, "missing");
        assert.equal(found(await ask.delete("two_keys", { b: "b", a: 1 })), null);
        assert.equal(found(await ask.delete("two_keys", { c: rows[5]?.row["c"] })), null);
        assert.equal((await ask.delete("two_keys", { a: 1, b: "b" })).outcome, "missing");
        assert.equal((await ask.rows("two_keys")).length, 8);
      });

      it("compares as the key does, for every type a key may have", async () => {
        await sql(`CREATE TYPE point2 AS (x int, y int); CREATE TYPE level AS ENUM ('low', 'high'); CREATE DOMAIN code AS text CHECK (value <> '');
          CREATE COLLATION any_case (provider = icu, locale = 'und-u-ks-level2', deterministic = false)`).catch(
          () => {},
        );
        const keys: Record<string, [type: string, value: unknown]> = {
          ...{
            k_big: ["bigint", "9007199254740993"],
            k_num: ["numeric", "1.10"],
            k_text: ["text", "a'b"],
            k_var: ["varchar(9)", "x y"],
            k_char: ["char(4)", "ab"],
            k_name: ["name", "n"],
          },
          ...{
            k_bytes: ["bytea", "\\x00ff"],
            k_date: ["date", "infinity"],
            k_at: ["timestamptz", "2024-01-01 00:00:00+00"],
            k_uuid: ["uuid", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"],
            k_bool: ["bool", true],
          },
          ...{
            k_enum: ["level", "high"],
            k_domain: ["code", "c"],
            k_array: ["int[]", "{1,2}"],
            k_range: ["int4range", "[1,5)"],
            k_pair: ["point2", "(1,2)"],
            k_json: ["jsonb", { a: 1 }],
            k_bits: ["bit(3)", "101"],
            k_float: ["float8", "0.1"],
          },
        };
        for (const [table, [type, value]] of Object.entries(keys)) {
          await sql(`CREATE TABLE ${table} (id ${type} PRIMARY KEY, n int)`);
          const { row } = found(await ask.insert(table, { id: value, n: 1 }));
          assert.equal(found(await ask.delete(table, { id: (row as { id: unknown }).id })), null, table);
          assert.deepEqual(await ask.rows(table), [], table);
        }
      });

      it("rows that others refer to stay, and so do those of tables without a key", async () => {
        await sql(`CREATE TABLE parents (id int PRIMARY KEY); CREATE TABLE children (parent int REFERENCES parents);
          INSERT INTO parents VALUES (1); INSERT INTO children VALUES (1); CREATE VIEW parent_view AS SELECT * FROM parents`);
        assert.equal((await ask.delete("parents", { id: 1 })).outcome, "conflict");
        assert.equal((await ask.delete("children", { parent: 1 })).outcome, "invalid");
        assert.equal((await ask.delete("parent_view", { id: 1 })).outcome, "invalid");
        assert.equal((await ask.rows("parents")).length, 1);
      });

      it("a key that names two rows, as in inherited tables, deletes none", async () => {
        await sql(
          "CREATE TABLE ancestor (id int PRIMARY KEY); CREATE TABLE heir () INHERITS (ancestor); INSERT INTO ancestor VALUES (1); INSERT INTO heir VALUES (1)",
        );
        assert.equal((await ask.delete("ancestor", { id: 1 })).outcome, "conflict");
        const ancestor = { schema: "public", table: "ancestor" };
        assert.equal((await ask.fixture.database.findRow(ask.fixture.login, ancestor, { id: 1 })).outcome, "conflict");
        assert.equal((await ask.rows("ancestor")).length, 2);
      });
    });
  });
}
