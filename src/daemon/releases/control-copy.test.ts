import assert from "node:assert/strict";
import { cpSync, existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import pg from "pg";
import { freePort } from "../../../test/support/free-port.ts";
import { lendControlDatabase } from "../../../test/support/lend-control-database.ts";
import { run, systemPath } from "../../kit/exec.ts";
import { silentLog, type Log } from "../../kit/log.ts";
import { ownFolder } from "../../kit/own-version.ts";
import { migrate } from "../../store/migrate.ts";
import { pathsIn, readConfig } from "../config.ts";
import { openOwnDatabase } from "../own-database.ts";
import { findPostgres, findProgram } from "../setup/find-program.ts";
import { copyControlDatabase, rehearseMigrations, rehearsePending } from "./control-copy.ts";

const sql = join(ownFolder, "sql");
const newest = readdirSync(sql)
  .filter((name) => /^\d/.test(name))
  .toSorted()
  .at(-1) as string;

async function openFolder(t: TestContext, lent: boolean) {
  const dataDir = mkdtempSync(join(tmpdir(), "berth-control-copy-"));
  const config = readConfig({ BERTH_DATA: dataDir });
  if (lent) await lendControlDatabase(dataDir);
  const postgres = await findPostgres({ searchPath: systemPath, ownFolders: [] });
  assert.ok(postgres, "PostgreSQL is installed");
  const programs = {
    postgresBin: postgres.bin,
    pgDump: join(postgres.bin, "pg_dump"),
    pgRestore: join(postgres.bin, "pg_restore"),
    bwrap: findProgram("bwrap", systemPath),
    missing: [],
  };
  const { connection, stop } = await openOwnDatabase(config, programs, silentLog);
  t.after(() => stop().finally(() => rmSync(dataDir, { recursive: true, force: true })));
  return { dataDir, config, connection, programs };
}

// The process of an upgrade that is killed leaves its rehearsal running, and the next one begins another.
test("rehearsals of one platform that begin at once do not disturb each other", async (t) => {
  const { dataDir, config, connection, programs } = await openFolder(t, true);
  const copy = await copyControlDatabase(config, { connection, programs });
  await Promise.all([1, 2, 3].map(() => rehearseMigrations(config, programs, copy)));
  assert.equal(existsSync(join(dataDir, "rehearsal")), false);
});

test("a start with a pending migration tries it on a copy first, and refuses when it fails there", async (t) => {
  const { dataDir, config, connection, programs } = await openFolder(t, false);
  const before = join(dataDir, "sql");
  cpSync(sql, before, { recursive: true, filter: (path) => !path.endsWith(newest) });
  await migrate({ connection, folder: before });
  const query = async (text: string) => {
    const client = new pg.Client(connection);
    await client.connect();
    return client.query<{ name: string }>(text).finally(() => client.end());
  };
  const schema = async () => (await query("select name from schema_migration order by name")).rows;
  const copies = () => {
    const folder = pathsIn(dataDir).controlCopies;
    return existsSync(folder) ? readdirSync(folder).map((name) => join(folder, name)) : [];
  };
  const logged: unknown[] = [];
  const note = (level: string) => (fields: object) => void logged.push([level, fields]);
  const log: Log = { ...silentLog, info: note("info"), warn: note("warn") };
  const rehearse = (databaseUrl: string | null) =>
    rehearsePending({ ...config, databaseUrl }, { connection, programs, log });

  await rehearse("postgres://elsewhere");
  assert.deepEqual(copies(), [], "the operator of a server elsewhere makes the copy");
  const applied = await schema();
  await rehearse(null);
  assert.deepEqual(logged, [
    ["warn", { pending: [newest] }],
    ["info", { pending: [newest], copy: copies()[0] }],
  ]);
  assert.match(copies()[0] ?? "", /\.dump$/);
  assert.deepEqual(await schema(), applied, "only the copy was migrated");

  await query(`create function refuse() returns trigger language plpgsql as $$begin raise exception 'refused'; end$$;
    create trigger refuse before insert on schema_migration for each row execute function refuse()`);
  const failed = new RegExp(`${newest} failed`);
  await assert.rejects(rehearse(null), failed);
  assert.deepEqual([await schema(), copies().length, logged.length], [applied, 2, 2]);

  const names = ["BERTH_HTTP_PORT", "BERTH_EDGE_PORT", "BERTH_SSH_PORT"];
  const ports = Object.fromEntries(await Promise.all(names.map(async (name) => [name, String(await freePort())])));
  const { exitCode, stderr } = await run(
    { file: process.execPath, args: [join(ownFolder, "src/daemon/main.ts"), "start"] },
    { env: { PATH: process.env["PATH"] ?? "", HOME: dataDir, BERTH_DATA: dataDir, ...ports } },
  );
  assert.equal(exitCode, 1);
  assert.match(stderr, failed);
  assert.equal(copies().length, 3, "the start has made a copy");
});
