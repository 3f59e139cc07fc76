import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { Asking, found, type TenantDatabaseFixture } from "./tenant-database.suite.ts";
import { eventually } from "../../test/support/eventually.ts";

/** What the hostile suite needs in addition: the sessions that the platform had to terminate. */
export interface TrappedFixture extends TenantDatabaseFixture {
  readonly ended: readonly number[];
}

/** The rules against an owner who has prepared traps in the schema for people who browse it. `make` is called once. */
export function tenantDatabaseTrapsSuite(make: () => Promise<TrappedFixture>): void {
  describe("a tenant database full of traps", () => {
    let ask: Asking;
    let fixture: TrappedFixture;
    const sql = (text: string) => fixture.sql(text);
    before(async () => {
      fixture = await make();
      ask = new Asking(fixture);
      await sql(traps);
    });
    after(() => fixture.close());

    /** Returns the roles under which the traps' functions ran, and what they gained. */
    const gained = async () =>
      (await sql("SELECT DISTINCT who, what FROM public.loot ORDER BY 1, 2")) as { who: string; what: string }[];

    it("what runs while reading runs as the project's role, and cannot write", async () => {
      for (const table of ["escalating_view", "writing_view", "program_view"]) {
        const looked = await ask.look(table);
        assert.equal(looked.outcome, "conflict", table);
      }
      assert.deepEqual(await gained(), []);
      const [row] = (await ask.rows("who_view")) as [Record<string, unknown>];
      const { role_name } = fixture.login.spec;
      assert.deepEqual(row, { session: role_name, current: role_name, super: "off", read_only: "on", search_path: "" });
    });

    it("what runs while writing runs as the project's role, and gains nothing", async () => {
      const looked = await ask.insert("triggered", { id: 1 });
      assert.deepEqual(found(looked).row, { id: 1, by_default: fixture.login.spec.role_name, made: 1 });
      assert.equal(found(await ask.delete("triggered", { id: 1 })), null);
      const { role_name } = fixture.login.spec;
      for (const { who, what } of await gained()) {
        assert.equal(who, role_name);
        assert.doesNotMatch(what, /^gained/);
      }
      assert.ok((await gained()).some(({ what }) => what.startsWith("refused")));
    });

    it("policies, index expressions and checks that escalate gain nothing", async () => {
      for (const table of ["guarded", "indexed", "checked"]) {
        await ask.look(table, { q: "x" });
        await ask.insert(table, { id: 7, body: "x" });
        await ask.look(table, { sort: "body" });
        await ask.delete(table, { id: 7 });
      }
      for (const { what } of await gained()) assert.doesNotMatch(what, /^gained/);
    });

    it("a function that sleeps is cancelled", async () => {
      assert.deepEqual(await ask.look("sleeping_view"), { outcome: "timeout" });
    });

    it("a function that ignores cancellation is ended, reading and writing", async () => {
      const before = fixture.ended.length;
      const outcomes = await Promise.all([ask.look("deaf_view"), ask.insert("deaf_table", { id: 1 })]);
      assert.deepEqual(outcomes, [{ outcome: "timeout" }, { outcome: "timeout" }]);
      await eventually(async () => (await sessions(sql)) === 0, "its session has ended");
      assert.equal(fixture.ended.length, before + 2);
      assert.deepEqual(await sql("SELECT * FROM deaf_table"), []);
    });

    it("floods of notices, of errors and of rows end the session instead of filling memory", async () => {
      const before = process.memoryUsage().rss;
      for (const table of ["noisy_view", "huge_error_view"])
        assert.notEqual((await ask.look(table)).outcome, "done", table);
      const page = found(await ask.look("endless_view", { limit: 500 }));
      assert.equal(page.rows.length, 500);
      assert.ok(process.memoryUsage().rss - before < 400 * 1024 * 1024);
      await eventually(async () => (await sessions(sql)) === 0, "its session has ended");
    });

    it("errors that the owner makes up say nothing but their kind", async () => {
      const looked = await ask.insert("lying_table", { id: 1 });
      assert.equal(looked.outcome, "conflict");
      assert.doesNotMatch(JSON.stringify(looked), /secret|SELECT|\/etc/);
      for (const table of ["lying_view", "divided_view"])
        assert.equal((await ask.look(table)).outcome, "conflict", table);
    });

    it("row security is obeyed, and a row that it hides is missing", async () => {
      assert.deepEqual(await ask.rows("secured"), [{ id: 1 }]);
      assert.equal((await ask.insert("secured", { id: 12 })).outcome, "conflict");
      assert.equal((await ask.delete("secured", { id: 11 })).outcome, "missing");
      assert.equal((await ask.delete("swallowed", { id: 1 })).outcome, "conflict");
      assert.equal((await ask.insert("swallowed", { id: 2 })).outcome, "conflict");
    });

    it("a locked table is not waited for", async () => {
      await sql("BEGIN; LOCK TABLE triggered IN ACCESS EXCLUSIVE MODE");
      assert.equal((await ask.look("triggered")).outcome, "unavailable");
      assert.ok((await ask.tables({ q: "triggered" })).total > 0);
      await sql("ROLLBACK");
    });

    it("what the owner set for its role does not reach the browser", async () => {
      const { database_name } = fixture.login.spec;
      for (const where of ["", `IN DATABASE ${database_name}`])
        for (const setting of [
          "local_preload_libraries = 'nosuchlib'",
          "search_path = nowhere",
          "idle_session_timeout = 1",
        ]) {
          await sql(`ALTER ROLE CURRENT_USER ${where} SET ${setting}`);
          const looked = await ask.look("who_view");
          await sql(`ALTER ROLE CURRENT_USER ${where} RESET ALL`);
          assert.equal(looked.outcome, "done", setting);
        }
    });

    it("another role's databases, and those that are none, are missing", async () => {
      const { database, login } = fixture;
      for (const name of ["postgres", "template0", "template1", "never_made"]) {
        const looked = await database.listTables(
          { ...login, database: name },
          { limit: 5, offset: 0, dir: "asc", sort: "name" },
        );
        assert.ok(looked.outcome === "missing" || (looked.outcome === "done" && looked.found.total === 0), name);
      }
    });

    it("only so many look into one database at once, and the next ones are told to come again", async () => {
      const busy = [ask.look("sleeping_view"), ask.look("sleeping_view"), ask.look("sleeping_view")];
      const refused = await ask.look("who_view");
      assert.equal(refused.outcome, "unavailable");
      await Promise.all(busy);
      await eventually(async () => (await ask.look("who_view")).outcome === "done", "a connection is free");
    });
  });
}

/** A statement has 5 s, and beside other work this one needs most of them. */
export function tenantDatabaseHugeValueSuite(make: () => Promise<TenantDatabaseFixture>): void {
  describe("a value as large as PostgreSQL allows", () => {
    let fixture: TenantDatabaseFixture;
    before(async () => {
      fixture = await make();
      await fixture.sql("CREATE VIEW huge_value_view AS SELECT repeat('x', 200000000) AS value");
    });
    after(() => fixture.close());

    it("is cut before it is sent", async () => {
      const page = found(await new Asking(fixture).look("huge_value_view"));
      assert.deepEqual(page.rows[0]?.cut, ["value"]);
    });
  });
}

async function sessions(sql: (text: string) => Promise<readonly Record<string, unknown>[]>): Promise<number> {
  const rows = await sql(
    "SELECT pid FROM pg_stat_activity WHERE application_name = 'berth browser' AND usename = current_user",
  );
  return rows.length;
}

// Each function tries something that would be an escalation if another role than the owner ran it, and records the result.
const traps = `
  CREATE TABLE loot (who text, what text);
  CREATE FUNCTION try(statement text) RETURNS void LANGUAGE plpgsql SET search_path = public AS $$ BEGIN
    EXECUTE statement; INSERT INTO loot VALUES (session_user, 'gained ' || statement);
  EXCEPTION WHEN OTHERS THEN INSERT INTO loot VALUES (session_user, 'refused ' || SQLSTATE || ' ' || statement); END $$;
  CREATE FUNCTION grab() RETURNS int LANGUAGE plpgsql AS $$ BEGIN
    PERFORM public.try('RESET SESSION AUTHORIZATION; CREATE ROLE thief SUPERUSER');
    PERFORM public.try('RESET ROLE; COPY (SELECT 1) TO PROGRAM ''touch /tmp/owned''');
    PERFORM public.try('COPY (SELECT 1) TO ''/tmp/owned''');
    PERFORM public.try('SELECT pg_read_file(''/etc/passwd'')');
    PERFORM public.try('SELECT lo_import(''/etc/passwd'')');
    PERFORM public.try('ALTER SYSTEM SET log_statement = ''all''');
    PERFORM public.try('SELECT * FROM pg_authid');
    PERFORM public.try('SET SESSION AUTHORIZATION postgres');
    PERFORM public.try('CREATE EXTENSION plpython3u');
    RETURN 1; END $$;
  CREATE FUNCTION whoami() RETURNS text LANGUAGE plpgsql AS $$ BEGIN PERFORM public.grab(); RETURN current_user; END $$;
  CREATE FUNCTION quiet(anyelement) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN PERFORM public.grab(); RETURN 'x'; EXCEPTION WHEN OTHERS THEN RETURN 'x'; END $$;
  CREATE FUNCTION program() RETURNS int LANGUAGE plpgsql AS $$ BEGIN COPY (SELECT 1) TO PROGRAM 'touch /tmp/owned'; RETURN 1; END $$;
  CREATE FUNCTION break_out() RETURNS int LANGUAGE plpgsql AS $$ BEGIN PERFORM set_config('transaction_read_only', 'off', false); INSERT INTO public.loot VALUES (session_user, 'gained a write'); RETURN 1; END $$;
  CREATE VIEW escalating_view AS SELECT grab();
  CREATE VIEW writing_view AS SELECT break_out();
  CREATE VIEW program_view AS SELECT program();
  CREATE VIEW who_view AS SELECT session_user AS session, current_user AS current, current_setting('is_superuser') AS super,
    current_setting('transaction_read_only') AS read_only, current_setting('search_path') AS search_path;

  CREATE TABLE triggered (id int PRIMARY KEY, by_default text DEFAULT whoami(), made int);
  CREATE FUNCTION on_change() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    PERFORM set_config('role', 'none', false); PERFORM set_config('statement_timeout', '0', false);
    IF TG_OP = 'DELETE' THEN PERFORM public.grab(); RETURN OLD; END IF; NEW.made := public.grab(); RETURN NEW; END $$;
  CREATE TRIGGER change BEFORE INSERT OR DELETE ON triggered FOR EACH ROW EXECUTE FUNCTION on_change();
  CREATE TABLE guarded (id int PRIMARY KEY, body text);
  ALTER TABLE guarded ENABLE ROW LEVEL SECURITY; ALTER TABLE guarded FORCE ROW LEVEL SECURITY;
  CREATE POLICY guard ON guarded USING (quiet(id) = 'x') WITH CHECK (quiet(id) = 'x');
  CREATE TABLE indexed (id int PRIMARY KEY, body text); CREATE INDEX ON indexed (quiet(id)); CREATE INDEX ON indexed ((id)) WHERE quiet(id) = 'x';
  CREATE TABLE checked (id int PRIMARY KEY, body text, more text GENERATED ALWAYS AS (quiet(id)) STORED, CHECK (quiet(id) = 'x'));

  CREATE VIEW sleeping_view AS SELECT 1 AS a, pg_sleep(60)::text AS b;
  CREATE FUNCTION deaf() RETURNS int LANGUAGE plpgsql AS $$ BEGIN
    LOOP BEGIN PERFORM set_config('statement_timeout', '0', false); PERFORM pg_sleep(60); EXCEPTION WHEN query_canceled THEN NULL; END; END LOOP; END $$;
  CREATE VIEW deaf_view AS SELECT deaf();
  CREATE TABLE deaf_table (id int PRIMARY KEY, made int DEFAULT deaf());
  CREATE FUNCTION noise() RETURNS int LANGUAGE plpgsql AS $$ BEGIN PERFORM set_config('client_min_messages', 'notice', false);
    LOOP RAISE NOTICE '%', repeat('x', 10000000); END LOOP; END $$;
  CREATE VIEW noisy_view AS SELECT noise();
  CREATE FUNCTION huge_error() RETURNS int LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION '%', repeat('x', 200000000); END $$;
  CREATE VIEW huge_error_view AS SELECT huge_error();
  CREATE VIEW endless_view AS WITH RECURSIVE endless(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM endless) SELECT n FROM endless;

  CREATE FUNCTION lie() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    RAISE EXCEPTION 'secret of /etc' USING ERRCODE = '23505', DETAIL = 'SELECT secret', HINT = '/etc', CONSTRAINT = E'a\\nb', TABLE = 'secret'; END $$;
  CREATE TABLE lying_table (id int PRIMARY KEY); CREATE TRIGGER lie BEFORE INSERT ON lying_table FOR EACH ROW EXECUTE FUNCTION lie();
  CREATE FUNCTION lied() RETURNS int LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'secret' USING ERRCODE = '42883'; END $$;
  CREATE VIEW lying_view AS SELECT lied() AS a;
  CREATE VIEW divided_view AS SELECT 1 / (random() * 0)::int AS a;

  CREATE TABLE secured (id int PRIMARY KEY); INSERT INTO secured VALUES (1), (11);
  ALTER TABLE secured ENABLE ROW LEVEL SECURITY; ALTER TABLE secured FORCE ROW LEVEL SECURITY; CREATE POLICY small ON secured USING (id < 10);
  CREATE TABLE swallowed (id int PRIMARY KEY); INSERT INTO swallowed VALUES (1);
  CREATE FUNCTION swallow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$;
  CREATE TRIGGER swallow BEFORE INSERT OR DELETE ON swallowed FOR EACH ROW EXECUTE FUNCTION swallow()`;
