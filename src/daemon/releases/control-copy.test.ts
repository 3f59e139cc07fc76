import assert from "node:assert/strict";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { lendControlDatabase } from "../../../test/support/lend-control-database.ts";
import { silentLog } from "../../kit/log.ts";
import { systemPath } from "../../kit/exec.ts";
import { readConfig } from "../config.ts";
import { openOwnDatabase } from "../own-database.ts";
import { findPostgres, findProgram } from "../setup/find-program.ts";
import { copyControlDatabase, rehearseMigrations } from "./control-copy.ts";

// The process of an upgrade that is killed leaves its rehearsal running, and the next one begins another.
test("rehearsals of one platform that begin at once do not disturb each other", async (t) => {
  const dataDir = mkdtempSync(join(tmpdir(), "berth-control-copy-"));
  t.after(() => rmSync(dataDir, { recursive: true, force: true }));
  const config = readConfig({ BERTH_DATA: dataDir });
  await lendControlDatabase(dataDir);
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
  const copy = await copyControlDatabase(config, { connection, programs }).finally(stop);
  await Promise.all([1, 2, 3].map(() => rehearseMigrations(config, programs, copy)));
  assert.equal(existsSync(join(dataDir, "rehearsal")), false);
});
