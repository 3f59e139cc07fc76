import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { zstdDecompressSync } from "node:zlib";
import { PassThrough, Readable } from "node:stream";
import { after, before, describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { loginOf, newDatabaseSpec, type PostgresHostFixture, type SuiteSession } from "./postgres-host.suite.ts";
import { DatabaseWorkFailed, type DatabaseEndpoint, type DumpSummary } from "./postgres-host.ts";
import { eventually } from "../../test/support/eventually.ts";

/** The port's rules for dumps, restores and counts. `make` is called once. */
export function postgresHostBackupsSuite(make: () => Promise<PostgresHostFixture>): void {
  describe("dumps and restores of a postgres host", () => {
    const spec = newDatabaseSpec();
    const { signal } = new AbortController();
    let fixture: PostgresHostFixture;
    let endpoint: DatabaseEndpoint;

    const inDatabase = async <T>(database: string, work: (session: SuiteSession) => Promise<T>): Promise<T> => {
      const session = await fixture.login(endpoint, { ...loginOf(spec), database });
      try {
        return await work(session);
      } finally {
        await session.end();
      }
    };
    const live = <T>(work: (session: SuiteSession) => Promise<T>) => inDatabase(spec.database_name, work);
    const query = (sql: string, database = spec.database_name) => inDatabase(database, (session) => session.query(sql));
    const dump = async (): Promise<{ archive: Buffer; summary: DumpSummary }> => {
      const chunks: Buffer[] = [];
      const consume = async (archive: Readable) => {
        for await (const chunk of archive) chunks.push(chunk as Buffer);
      };
      const summary = await fixture.host.dump(spec, { consume, isCompressed: false, signal });
      return { archive: Buffer.concat(chunks), summary };
    };
    const dumpCompressed = async (): Promise<Buffer> => {
      const chunks: Buffer[] = [];
      const consume = async (archive: Readable) => {
        for await (const chunk of archive) chunks.push(chunk as Buffer);
      };
      await fixture.host.dump(spec, { consume, isCompressed: true, signal });
      return Buffer.concat(chunks);
    };
    const inFresh = async (work: (name: string) => Promise<void>): Promise<void> => {
      const name = `fresh_${randomBytes(5).toString("hex")}`;
      await fixture.host.createDatabase(spec, name);
      try {
        await work(name);
      } finally {
        await fixture.host.dropDatabase(spec, name);
      }
    };
    const restored = (archive: Buffer, work: (name: string) => Promise<void>) =>
      inFresh(async (name) => {
        await fixture.host.restore(spec, name, { archive: Readable.from(pieces(archive)), signal });
        await work(name);
      });
    const counted = (name: string) => fixture.host.countRows(spec, name, { signal });

    before(async () => {
      fixture = await make();
      endpoint = await fixture.host.ensure(spec);
      await query(schema);
    });
    after(() => fixture.host.destroy(spec.id));

    it("waits for a reader that begins late, with nothing lost of a small dump", async () => {
      const { archive } = await dump();
      const chunks: Buffer[] = [];
      const consume = async (late: Readable) => {
        await sleep(1000);
        for await (const chunk of late) chunks.push(chunk as Buffer);
      };
      await fixture.host.dump(spec, { consume, isCompressed: false, signal });
      assert.equal(Buffer.concat(chunks).length, archive.length);
    });

    it("brings everything back, with the counts of the dump", async () => {
      const { archive, summary } = await dump();
      assert.equal(summary.engine_version, endpoint.engine_version);
      assert.deepEqual(summary.counts, [
        { table: 'app."Odd ""name"""', rows: 2 },
        { table: "app.parts_1", rows: 3 },
        { table: "app.parts_2", rows: 0 },
        { table: "public.child", rows: 1 },
        { table: "public.empty", rows: 0 },
        { table: "public.guarded", rows: 5 },
        { table: "public.items", rows: 1000 },
      ]);
      await restored(archive, async (name) => {
        assert.deepEqual(await counted(name), summary.counts);
        const sql = "select md5(string_agg(i::text, ',' order by id)) as sum from items i";
        assert.deepEqual(await query(sql, name), await query(sql));
        assert.deepEqual(await query("select n from app.summary", name), [{ n: "1000" }]);
      });
    });

    it("leaves the live database as it was", async () => {
      const state = "select md5(string_agg(g::text, ',')) from (select * from items order by id) g";
      const before = await query(state);
      const { archive } = await dump();
      await restored(archive, async (name) => void (await query("delete from items", name)));
      assert.deepEqual(await query(state), before);
    });

    it("counts and dumps one state, while others go on writing", async () => {
      let writing = true;
      const writer = live(async (session) => {
        while (writing) await session.query("insert into items (label) select 'while' from generate_series(1, 10)");
      });
      const { archive, summary } = await dump();
      writing = false;
      await writer;
      await restored(archive, async (name) => assert.deepEqual(await counted(name), summary.counts));
    });

    it("says how far the counting is", async () => {
      const seen: string[] = [];
      await fixture.host.countRows(spec, spec.database_name, {
        signal,
        onCounted: ({ counted: n, tables }) => seen.push(`${n}/${tables}`),
      });
      assert.deepEqual(seen, ["1/7", "2/7", "3/7", "4/7", "5/7", "6/7", "7/7"]);
    });

    it("lists the further databases", async () => {
      await inFresh(async (name) =>
        assert.deepEqual((await fixture.host.listDatabases(spec)).toSorted(), [name, spec.database_name].toSorted()),
      );
    });

    it("refuses to restore into the live database", async () => {
      const restore = fixture.host.restore(spec, spec.database_name, { archive: Readable.from([]), signal });
      await assert.rejects(restore);
    });

    for (const [what, damage] of [
      ["truncated", (archive: Buffer) => archive.subarray(0, archive.length - 2000)],
      ["no archive", () => Buffer.from("nothing of the kind")],
      ["empty", () => Buffer.alloc(0)],
    ] as const) {
      it(`restores nothing of an archive that is ${what}`, async () => {
        const { archive } = await dump();
        await inFresh(async (name) => {
          const restore = fixture.host.restore(spec, name, { archive: Readable.from(pieces(damage(archive))), signal });
          await assert.rejects(restore, DatabaseWorkFailed);
          assert.deepEqual(await counted(name), []);
        });
      });
    }

    it("restores nothing of a stream that breaks, and says why it broke", async () => {
      const { archive } = await dump();
      const why = new Error("the storage went away");
      const breaking = async function* () {
        yield archive.subarray(0, archive.length / 2);
        throw why;
      };
      await inFresh(async (name) => {
        await assert.rejects(fixture.host.restore(spec, name, { archive: Readable.from(breaking()), signal }), why);
        assert.deepEqual(await counted(name), []);
      });
    });

    it("restores although the application holds all of its connections", async () => {
      const { archive } = await dump();
      const sessions = await Promise.all(Array.from({ length: 20 }, () => fixture.login(endpoint, loginOf(spec))));
      try {
        await inFresh((name) => fixture.host.restore(spec, name, { archive: Readable.from([archive]), signal }));
      } finally {
        for (const session of sessions) await session.end();
      }
      assert.equal(
        (await query(`select rolconnlimit as n from pg_roles where rolname = '${spec.role_name}'`))[0]?.["n"],
        20,
      );
    });

    it("ends with the reason when whoever takes the archive fails", async () => {
      const why = new Error("there is no room");
      const consume = async (archive: Readable) => {
        for await (const _ of archive) throw why;
      };
      await assert.rejects(fixture.host.dump(spec, { consume, isCompressed: false, signal }), why);
    });

    it("ends soon when it is told to stop, and leaves no session behind", async () => {
      const stop = new AbortController();
      const consume = async (archive: Readable) => {
        stop.abort(new Error("stopped"));
        for await (const _ of archive) await new Promise((resolve) => setImmediate(resolve));
      };
      await assert.rejects(fixture.host.dump(spec, { consume, isCompressed: false, signal: stop.signal }));
      const sessions = "select count(*)::int as n from pg_stat_activity where usename like '%\\_backup'";
      await eventually(async () => (await query(sessions))[0]?.["n"] === 0, "no session is left");
    });

    it("takes what the owner set for its role against a restore in its stride", async () => {
      const { archive } = await dump();
      const role = spec.role_name;
      await query(
        `alter role ${role} set default_transaction_read_only = on; alter role ${role} set statement_timeout = 1; alter role ${role} set search_path = nowhere; alter role ${role} set local_preload_libraries = 'nosuchlib'; alter role ${role} set idle_session_timeout = 1`,
      );
      try {
        await restored(archive, async () => {});
      } finally {
        const session = "set transaction read write; set local statement_timeout = 0";
        await query(`${session}; alter role ${role} reset all`);
      }
    });

    it("gives a schema full of traps nothing, in dump, counts, restore and a second dump", async () => {
      const planted = `/tmp/planted-${randomBytes(6).toString("hex")}`;
      await query(traps(spec.role_name, planted));
      try {
        const { archive, summary } = await dump();
        await restored(archive, async (name) => {
          // The traps may write to that table while they are restored.
          const others = (all: DumpSummary["counts"]) => all.filter(({ table }) => table !== "public.witness");
          assert.deepEqual(others(await counted(name)), others(summary.counts));
          const ran = await query("select distinct session_user_name as s, current_user_name as c from witness", name);
          assert.deepEqual(ran, [{ s: spec.role_name, c: spec.role_name }]);
        });
        const ranLive = await query("select distinct session_user_name as s from witness");
        assert.deepEqual(ranLive, [{ s: spec.role_name }]);
        assert.deepEqual(
          await query(
            "select rolsuper, rolbypassrls, rolcreaterole, rolcreatedb from pg_roles where rolname = current_user",
          ),
          [{ rolsuper: false, rolbypassrls: false, rolcreaterole: false, rolcreatedb: false }],
        );
        assert.deepEqual(
          await query(
            "select * from pg_auth_members m join pg_roles r on r.oid = m.member where r.rolname = current_user",
          ),
          [],
        );
        assert.deepEqual(await query("select rolname from pg_roles where rolname in ('evil')"), []);
        assert.deepEqual(
          await query("select rolsuper, rolcreaterole, rolreplication from pg_roles where rolname like '%\\_backup'"),
          [{ rolsuper: false, rolcreaterole: false, rolreplication: false }],
        );
        assert.ok(!existsSync(planted));
      } finally {
        await query("drop schema traps cascade; drop table witness");
      }
    });

    it("comes compressed by zstd, the same content", async () => {
      const { archive } = await dump();
      const unpacked = zstdDecompressSync(await dumpCompressed());
      assert.equal(unpacked.subarray(0, 5).toString("latin1"), "PGDMP");
      assert.equal(unpacked.length, archive.length);
    });

    it("says in a sentence what the database refused", async () => {
      await query("create table locked_away (a int); revoke all on locked_away from current_user");
      try {
        for (const refused of [dump, dumpCompressed])
          await assert.rejects(
            refused(),
            (error) =>
              error instanceof DatabaseWorkFailed &&
              error.reason === "refused" &&
              /locked_away/.test(error.message) &&
              !/\n|LOCK TABLE|SELECT/.test(error.message),
          );
      } finally {
        await query("drop table locked_away");
      }
    });

    it("hands the archive on under back-pressure", async () => {
      const through = new PassThrough({ highWaterMark: 1 });
      const consume = async (archive: Readable) => {
        archive.pipe(through);
        let size = 0;
        for await (const chunk of through) size += (chunk as Buffer).length;
        assert.ok(size > 10_000);
      };
      await fixture.host.dump(spec, { consume, isCompressed: false, signal });
    });
  });
}

function* pieces(content: Buffer): Generator<Buffer> {
  for (let at = 0; at < content.length; at += 10_000) yield content.subarray(at, at + 10_000);
}

const schema = `
  create extension pg_trgm;
  create schema app;
  create table items (id int generated always as identity primary key, label text, doubled text generated always as (label || label) stored);
  insert into items (label) select 'item ' || i from generate_series(1, 1000) i;
  create table child (more int) inherits (items);
  insert into child (id, label) overriding system value values (0, 'a child');
  create table empty ();
  create table app."Odd ""name""" (a int);
  insert into app."Odd ""name""" values (1), (2);
  create table app.parts (k int, v text) partition by list (k);
  create table app.parts_1 partition of app.parts for values in (1);
  create table app.parts_2 partition of app.parts for values in (2);
  insert into app.parts values (1, 'a'), (1, 'b'), (1, 'c');
  create view app.seen as select * from items;
  create materialized view app.summary as select count(*) as n from only items;
  create table guarded (a int);
  insert into guarded select generate_series(1, 5);
  alter table guarded enable row level security;
  alter table guarded force row level security;
  create policy nobody on guarded using (false);
  create index on items using gin (label gin_trgm_ops);
  select lo_create(0);
  create publication everything for table items;
`;

/** Returns everything that runs an owner's code when it is read, written, restored or analysed; the code tries to gain rights. */
function traps(role: string, planted: string): string {
  const attempts = [
    "reset role",
    "reset session authorization",
    "set session authorization berth",
    "set role berth",
    `alter role ${role} superuser`,
    `alter role ${role} bypassrls`,
    `grant berth to ${role}`,
    `grant ${role}_backup to ${role}`,
    "create role evil superuser",
    `copy (select 1) to program 'touch ${planted}'`,
    `copy (select 1) to '${planted}'`,
    `select pg_catalog.lo_export(1, '${planted}')`,
    "alter system set log_statement = 'all'",
    "set session_replication_role = replica",
    "set local default_transaction_read_only = off",
  ];
  const tries = attempts.map((sql) => `begin execute ${quoted(sql)}; exception when others then null; end;`).join("\n");
  return `
    create table witness (session_user_name text, current_user_name text);
    create schema traps;
    create function traps.attack() returns boolean language plpgsql as $f$
    begin
      ${tries}
      begin insert into public.witness values (session_user, current_user); exception when others then null; end;
      return true;
    end $f$;
    create function traps.attack_still() returns boolean language plpgsql immutable as $f$ begin return traps.attack(); end $f$;
    create function traps.attack_text(a text) returns text language plpgsql immutable as $f$ begin perform traps.attack(); return a; end $f$;
    create function traps.attack_trigger() returns trigger language plpgsql as $f$ begin perform traps.attack(); return new; end $f$;
    create domain traps.checked as text check (traps.attack());
    create table traps.by_check (a int check (traps.attack()), b traps.checked, c text default traps.attack_text('x'),
      d text generated always as (traps.attack_text('y')) stored);
    create index on traps.by_check (traps.attack_text(c)) where traps.attack_still();
    insert into traps.by_check (a, b) select i, 'b' from generate_series(1, 3) i;
    create trigger t before insert or update on traps.by_check for each row execute function traps.attack_trigger();
    alter table traps.by_check enable always trigger t;
    create table traps.by_policy (a int);
    insert into traps.by_policy values (1);
    alter table traps.by_policy enable row level security;
    alter table traps.by_policy force row level security;
    create policy p on traps.by_policy using (traps.attack()) with check (traps.attack());
    create view traps.by_view as select traps.attack() as a;
    create materialized view traps.by_materialized as select traps.attack() as a;
    create rule r as on insert to traps.by_policy do also select traps.attack();
    create statistics traps.s on (traps.attack_text(c)), a from traps.by_check;
    create operator traps.=== (leftarg = text, rightarg = text, function = texteq);
    create function traps.count() returns bigint language plpgsql as $f$ begin perform traps.attack(); return 0; end $f$;
  `;
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}
