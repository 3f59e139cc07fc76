import { createHash } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { pathsIn, readConfig } from "../../src/daemon/config.ts";
import { openOwnDatabase } from "../../src/daemon/own-database.ts";
import { findPostgres, findProgram } from "../../src/daemon/setup/find-program.ts";
import { runOk, systemPath } from "../../src/kit/exec.ts";
import { silentLog } from "../../src/kit/log.ts";
import { migrate, readMigrations } from "../../src/store/migrate.ts";

// initdb and the migrations take two seconds of processor time, and their result is the same for each platform. Removing the cache is safe.
const cache = fileURLToPath(new URL("../../node_modules/.cache/", import.meta.url));

/** Copies a migrated, empty control database into the data folder of a platform before its first start, if this machine has PostgreSQL. */
export async function lendControlDatabase(dataDir: string): Promise<void> {
  const postgres = await findPostgres({ searchPath: systemPath, ownFolders: [] });
  const target = pathsIn(dataDir).ownPostgres;
  if (postgres === null || existsSync(target)) return;
  const sums = (await readMigrations()).map(({ sha256 }) => sha256).join();
  const key = createHash("sha256").update(`${sums} ${postgres.bin} ${process.getuid?.()}`).digest("hex").slice(0, 12);
  const shared = join(cache, `berth-test-control-database-${key}`);
  if (!existsSync(shared)) await make(shared, postgres.bin);
  mkdirSync(target, { mode: 0o700 });
  // `-a` keeps the owner of the files, which is the server's user.
  await runOk({ file: "cp", args: ["-a", "--reflink=auto", `${shared}/.`, target] });
}

async function make(shared: string, postgresBin: string): Promise<void> {
  mkdirSync(cache, { recursive: true });
  const dataDir = mkdtempSync(join(cache, ".control-database-"));
  try {
    const config = readConfig({ BERTH_DATA: dataDir });
    const parts = { postgresBin, bwrap: findProgram("bwrap", systemPath), missing: [] };
    const database = await openOwnDatabase(config, parts, silentLog);
    await migrate({ connection: database.connection }).finally(() => database.stop());
    const { ownPostgres } = pathsIn(dataDir);
    // These files belong to one server. The cache keeps the data and the superuser's secret.
    for (const name of ["config", "process-mark", "lock", "postgresql.log"])
      rmSync(join(ownPostgres, name), { recursive: true, force: true });
    renameSync(ownPostgres, shared);
  } catch (error) {
    // Another test has created the same folder in the meantime.
    if (!["ENOTEMPTY", "EEXIST"].includes((error as NodeJS.ErrnoException).code ?? "")) throw error;
  } finally {
    rmSync(dataDir, { recursive: true, force: true });
  }
}
