import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { after, before, describe, it } from "node:test";
import { newId } from "../kit/ids.ts";
import type { DatabaseEndpoint, DatabaseSpec, PostgresHost } from "./postgres-host.ts";
import { guardMs } from "../../test/support/eventually.ts";

/** What an adapter's test provides to the suite. */
export interface PostgresHostFixture {
  readonly host: PostgresHost;
  /** Whether the projects' databases share one server. */
  readonly isShared?: boolean;
  /** Logs in at the endpoint, over TCP or through its socket. Rejects with the server's error, which carries `code`. */
  login(endpoint: DatabaseEndpoint, login: SuiteLogin): Promise<SuiteSession>;
}

export interface SuiteLogin {
  readonly user: string;
  readonly password: string;
  readonly database: string;
  readonly way: "tcp" | "socket";
}

export interface SuiteSession {
  query(sql: string): Promise<readonly Record<string, unknown>[]>;
  end(): Promise<void>;
}

let lastNumber = 0;

/** Returns a database's row as the store would, with its own names and password. */
export function newDatabaseSpec(): DatabaseSpec {
  lastNumber += 1;
  const random = () => randomBytes(8).toString("hex");
  const names = {
    role_name: `r_${random()}`,
    database_name: `d_${random()}`,
    password: randomBytes(24).toString("base64url"),
  };
  return { id: newId("dbs"), project_id: newId("prj"), project_number: lastNumber, access: "open", ...names };
}

/** Returns the login that the project's application has. */
export function loginOf(spec: DatabaseSpec, way: "tcp" | "socket" = "tcp"): SuiteLogin {
  return { user: spec.role_name, password: spec.password, database: spec.database_name, way };
}

/** The rules that every adapter of the port obeys. `make` is called once. */
export function postgresHostSuite(make: () => Promise<PostgresHostFixture>): void {
  describe("postgres host", () => {
    const first = newDatabaseSpec();
    const second = newDatabaseSpec();
    let fixture: PostgresHostFixture;
    let endpoint: DatabaseEndpoint;

    const inSession = async <T>(
      login: SuiteLogin,
      work: (session: SuiteSession) => Promise<T>,
      at = endpoint,
    ): Promise<T> => {
      const session = await fixture.login(at, login);
      try {
        return await work(session);
      } finally {
        await session.end();
      }
    };
    const isIntact = async (access: DatabaseSpec["access"] = "open") => {
      const seen = await fixture.host.observe({ ...first, access });
      return seen.state === "running" && seen.intact;
    };
    const asOwner = <T>(work: (session: SuiteSession) => Promise<T>) => inSession(loginOf(first), work);

    before(async () => {
      fixture = await make();
      assert.deepEqual(await fixture.host.observe(first), { state: "absent" });
      endpoint = await fixture.host.ensure(first);
    });
    after(async () => {
      for (const { id } of [first, second]) await fixture.host.destroy(id);
      assert.deepEqual(await fixture.host.list(), []);
      assert.deepEqual(await fixture.host.observe(first), { state: "absent" });
      await fixture.host.destroy(first.id);
    });

    for (const way of ["tcp", "socket"] as const) {
      it(`lets the role in over ${way} with its password, and nobody with another`, async () => {
        const rows = await inSession(loginOf(first, way), (session) => session.query("select current_user as name"));
        assert.equal(rows[0]?.["name"], first.role_name);
        await assert.rejects(
          inSession({ ...loginOf(first, way), password: "wrong" }, (session) => session.query("select 1")),
          { code: "28P01" },
        );
      });
    }

    it("observes size, connections and version of what runs", async () => {
      const seen = await asOwner(() => fixture.host.observe(first));
      assert.equal(seen.state, "running");
      assert.deepEqual(seen.endpoint, endpoint);
      assert.match(endpoint.engine_version, /^\d+\.\d+$/);
      assert.ok(seen.size_bytes > 1_000_000 && seen.connections >= 1);
    });

    it("shows the role's statements without their values, or null where the server does not collect them", async () => {
      const ask = () => fixture.host.statements(first, { database: first.database_name, sort: "most" });
      await ask();
      await asOwner((session) => session.query("select 'a secret' as word, pg_sleep(0.02)"));
      await asOwner((session) => session.query("alter role current_user set application_name = 'a secret'"));
      const statements = await ask();
      if (fixture.isShared === true) return assert.equal(statements, null);
      const found = statements?.find(({ query }) => query.includes("pg_sleep"));
      assert.equal(found?.query, "select $1 as word, pg_sleep($2)");
      assert.ok(found.calls === 1 && found.most_ms >= 20);
      assert.ok(!JSON.stringify(statements).includes("secret"));
      await assert.rejects(
        asOwner((session) => session.query("select * from pg_stat_statements")),
        { code: "42P01" },
      );
      // Texts of many megabytes are forgotten.
      await asOwner((session) => session.query(`select /* ${"x".repeat(17 * 1024 * 1024)} */ 1`));
      await fixture.host.observe(first);
      assert.ok(!(await ask())?.some(({ query }) => query.includes("pg_sleep")));
    });

    it("changes nothing when it is ensured again", async () => {
      await asOwner((session) => session.query("create table kept (a int); insert into kept values (42)"));
      assert.deepEqual(await fixture.host.ensure(first), endpoint);
      assert.deepEqual(await asOwner((session) => session.query("select a from kept")), [{ a: 42 }]);
    });

    it("keeps data and address over stop and ensure", async () => {
      await asOwner((session) => session.query("create table over_stop (a int); insert into over_stop values (7)"));
      await fixture.host.stop(first.id);
      await fixture.host.stop(first.id);
      assert.deepEqual(await fixture.host.observe(first), { state: "stopped" });
      assert.deepEqual(await fixture.host.list(), [first.id]);
      assert.deepEqual(await fixture.host.ensure(first), endpoint);
      assert.deepEqual(await asOwner((session) => session.query("select a from over_stop")), [{ a: 7 }]);
    });

    it("serves two calls of ensure at once", async () => {
      await fixture.host.stop(first.id);
      assert.deepEqual(await Promise.all([fixture.host.ensure(first), fixture.host.ensure(first)]), [
        endpoint,
        endpoint,
      ]);
    });

    it("sets the password again that the owner changed", async () => {
      await asOwner((session) => session.query(`alter role ${first.role_name} password 'mine'`));
      await assert.rejects(
        asOwner((session) => session.query("select 1")),
        { code: "28P01" },
      );
      await fixture.host.ensure(first);
      await asOwner((session) => session.query("select 1"));
    });

    it("takes over a new password", async () => {
      await fixture.host.ensure({ ...first, password: "another-password" });
      await assert.rejects(
        asOwner((session) => session.query("select 1")),
        { code: "28P01" },
      );
      await fixture.host.ensure(first);
      await asOwner((session) => session.query("select 1"));
    });

    it("makes and drops further databases that the role can use and not drop", async () => {
      const name = `x_${randomBytes(6).toString("hex")}`;
      const login = { ...loginOf(first), database: name };
      await fixture.host.createDatabase(first, name);
      await inSession(login, (session) =>
        session.query("create table t (a int); create schema s; create extension pgcrypto"),
      );
      await fixture.host.createDatabase(first, name);
      assert.equal((await inSession(login, (session) => session.query("select * from t"))).length, 0);
      await assert.rejects(
        asOwner((session) => session.query(`drop database ${name}`)),
        { code: "42501" },
      );
      await inSession(login, () => fixture.host.dropDatabase(first, name)).catch(() => {});
      await fixture.host.dropDatabase(first, name);
      await assert.rejects(
        inSession(login, (session) => session.query("select 1")),
        { code: "3D000" },
      );
    });

    it("ends all writes to a database that is left, those in progress too, until it is used again", async () => {
      await asOwner((session) => session.query("create table written (a int)"));
      const [idle, busy] = [
        await fixture.login(endpoint, loginOf(first)),
        await fixture.login(endpoint, loginOf(first)),
      ];
      await busy.query("begin; insert into written values (1)");
      await fixture.host.setWritable(first, first.database_name, false);
      await assert.rejects(idle.query("insert into written values (2)"));
      await assert.rejects(busy.query("commit"));
      for (const session of [idle, busy]) await session.end().catch(() => {});
      await assert.rejects(
        asOwner((session) => session.query("insert into written values (3)")),
        { code: "25006" },
      );
      assert.deepEqual(await asOwner((session) => session.query("select a from written")), []);
      await fixture.host.setWritable(first, first.database_name, true);
      await asOwner((session) => session.query("insert into written values (4)"));
      await assert.rejects(fixture.host.setWritable(first, "postgres", false));
    });

    it("refuses to drop the project's own database", async () => {
      await assert.rejects(fixture.host.dropDatabase(first, first.database_name));
      await assert.rejects(fixture.host.dropDatabase(first, "postgres"));
    });

    it("ends a session of the role from outside, and no other's", async () => {
      const session = await fixture.login(endpoint, loginOf(first));
      const [{ pid }] = (await session.query("select pg_backend_pid() as pid")) as [{ pid: number }];
      await fixture.host.endSession({ ...first, role_name: second.role_name }, pid);
      await session.query("select 1");
      await fixture.host.endSession(first, pid);
      await assert.rejects(session.query("select 1"));
      await fixture.host.endSession(first, pid);
      await session.end().catch(() => {});
    });

    it("lets the owner use what PostgreSQL calls trusted", async () => {
      await asOwner((session) =>
        session.query(
          "create extension pg_trgm; create extension hstore; create schema app; create temp table t (a int)",
        ),
      );
    });

    for (const [what, sql] of deniedToOwner(first)) {
      it(`denies the owner to ${what}`, async () => {
        await assert.rejects(
          asOwner((session) => session.query(sql)),
          { code: "42501" },
        );
      });
    }

    for (const database of ["postgres", "template1"]) {
      it(`denies the owner the database ${database}`, async () => {
        await assert.rejects(
          inSession({ ...loginOf(first), database }, (session) => session.query("select 1")),
          { code: "42501" },
        );
      });
    }

    it("limits the owner's connections and keeps a way in for the platform", async () => {
      const sessions: SuiteSession[] = [];
      try {
        await assert.rejects(
          async () => {
            for (let i = 0; i <= 20; i += 1) sessions.push(await fixture.login(endpoint, loginOf(first)));
          },
          { code: "53300" },
        );
        assert.equal(sessions.length, 20);
        assert.equal((await fixture.host.observe(first)).state, "running");
        assert.deepEqual(await fixture.host.ensure(first), endpoint);
      } finally {
        for (const session of sessions) await session.end();
      }
    });

    it("gives defaults against accidents", async () => {
      const rows = await asOwner((session) =>
        session.query(
          "select current_setting('temp_file_limit') a, current_setting('idle_in_transaction_session_timeout') b",
        ),
      );
      assert.deepEqual(rows, [{ a: "1GB", b: "1min" }]);
    });

    for (const sql of selfInflicted(first))
      it(`notices and undoes \`${sql}\``, async () => {
        await asOwner((session) => session.query(sql));
        assert.equal(await isIntact(), false);
        await fixture.host.ensure(first);
        assert.equal(await isIntact(), true);
        const rows = await asOwner((session) =>
          session.query("select current_setting('statement_timeout') a, current_setting('search_path') b"),
        );
        assert.deepEqual(rows, [{ a: "5min", b: '"$user", public' }]);
        await asOwner((session) => session.query("create temp table after_repair (a int)"));
      });

    it("ends writes of a read-only role, lets it delete, and gives it back what it had", async () => {
      await asOwner((session) => session.query("create table filled as select generate_series(1, 1000) a"));
      const writer = await fixture.login(endpoint, loginOf(first));
      await fixture.host.ensure({ ...first, access: "read_only" });
      await assert.rejects(writer.query("insert into filled values (1)"));
      await writer.end().catch(() => {});
      const write = (session: SuiteSession) => session.query("insert into filled values (1)");
      await assert.rejects(asOwner(write), { code: "25006" });
      await asOwner((session) => session.query("set transaction read write; alter role current_user reset all"));
      assert.equal(await isIntact("read_only"), false);
      await fixture.host.ensure({ ...first, access: "read_only" });
      await assert.rejects(asOwner(write), { code: "25006" });
      await asOwner((session) => session.query("set transaction read write; delete from filled"));
      await fixture.host.ensure(first);
      await asOwner(write);
    });

    it("closes the database to the role alone, and opens it again", async () => {
      const open = await fixture.login(endpoint, loginOf(first));
      await fixture.host.ensure({ ...first, access: "closed" });
      await assert.rejects(open.query("select 1"));
      await open.end().catch(() => {});
      await assert.rejects(
        asOwner((session) => session.query("select 1")),
        { code: "53300" },
      );
      assert.equal(await isIntact("closed"), true);
      const signal = AbortSignal.timeout(guardMs);
      const counts = await fixture.host.countRows(first, first.database_name, { signal });
      assert.equal(counts.find(({ table }) => table === "public.filled")?.rows, 1);
      await fixture.host.ensure(first);
      await asOwner((session) => session.query("select 1"));
    });

    it("counts further databases and temporary files in its size", async () => {
      const name = `x_${randomBytes(6).toString("hex")}`;
      const size = async () => {
        const seen = await fixture.host.observe(first);
        return seen.state === "running" ? seen.size_bytes : assert.fail(seen.state);
      };
      const before = await size();
      await fixture.host.createDatabase(first, name);
      assert.ok((await size()) > before + 5_000_000);
      await fixture.host.dropDatabase(first, name);
      const session = await fixture.login(endpoint, loginOf(first));
      await session.query(
        "begin; set work_mem = '64kB'; declare c cursor with hold for select repeat('x', 1000) from generate_series(1, 30000); commit",
      );
      assert.ok((await size()) > before + 20_000_000);
      await session.end();
    });

    it("keeps two projects apart", async () => {
      const other = await fixture.host.ensure(second);
      if (!fixture.isShared) {
        assert.notEqual(other.port, endpoint.port);
        assert.notEqual(other.host, endpoint.host);
      }
      for (const way of ["tcp", "socket"] as const) {
        await assert.rejects(
          inSession(
            { ...loginOf(first, way), database: second.database_name },
            (session) => session.query("select 1"),
            other,
          ),
          { code: fixture.isShared ? "42501" : "28P01" },
        );
        await assert.rejects(
          inSession(
            { ...loginOf(second, way), password: first.password },
            (session) => session.query("select 1"),
            other,
          ),
          { code: "28P01" },
        );
      }
      await fixture.host.stop(second.id);
      await asOwner((session) => session.query("select 1"));
      assert.deepEqual((await fixture.host.list()).toSorted(), [first.id, second.id].toSorted());
    });
  });
}

/** Returns what an owner may do to its own role, by accident or to lock others out. */
function selfInflicted({ database_name }: DatabaseSpec): readonly string[] {
  return [
    "alter role current_user password 'mine'",
    "alter role current_user password null",
    "alter role current_user set local_preload_libraries = 'nosuchlib'",
    `alter role current_user in database ${database_name} set local_preload_libraries = 'nosuchlib'`,
    `alter role current_user in database ${database_name} set statement_timeout = 1`,
    "alter role current_user set search_path = nowhere",
    "alter role current_user set role = none",
    "alter role current_user set idle_session_timeout = 1",
    "alter role current_user reset all",
  ];
}

function deniedToOwner(spec: DatabaseSpec): readonly (readonly [what: string, sql: string])[] {
  return [
    ["read password hashes", "select * from pg_authid"],
    ["read pg_shadow", "select * from pg_shadow"],
    ["run programs", "create table p (a text); copy p from program 'id'"],
    ["write files", "copy (select 1) to '/tmp/written'"],
    ["read files by copy", "create table f (a text); copy f from '/etc/passwd'"],
    ["read files", "select pg_read_file('/etc/passwd')"],
    ["list folders", "select pg_ls_dir('/')"],
    ["import files", "select lo_import('/etc/passwd')"],
    ["make roles", "create role evil"],
    ["make databases", "create database evil"],
    ["drop the database", `drop database ${spec.database_name}`],
    ["change the server's settings", "alter system set work_mem = '1GB'"],
    ["raise its own connection limit", `alter role ${spec.role_name} connection limit 100`],
    ["make itself a superuser", `alter role ${spec.role_name} superuser`],
    ["raise the limit of temporary files", "set temp_file_limit = -1"],
    ["write into the server's log", "set log_min_messages = 'debug1'"],
    ["end other sessions", "select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid()"],
    ["reload the server's settings", "select pg_reload_conf()"],
    ["connect to other servers", "create extension dblink"],
    ["wrap other servers", "create extension postgres_fdw"],
    ["wrap files", "create extension file_fdw"],
    ["write code for the server", "create function f() returns int language c as 'x', 'y'"],
    [
      "make event triggers",
      "create function t() returns event_trigger language plpgsql as 'begin end'; create event trigger e on ddl_command_start execute function t()",
    ],
    ["read the settings of the server's files", "select * from pg_hba_file_rules"],
  ];
}
