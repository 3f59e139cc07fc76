import { mkdir, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import type { PoolConfig } from "pg";
import { withFolderLock } from "../../adapters/postgres-host-local/folder-lock.ts";
import { createLocalServer } from "../../adapters/postgres-host-local/server.ts";
import { runOk } from "../../kit/exec.ts";
import { onDiskOf } from "../../kit/disk-fault.ts";
import type { Log } from "../../kit/log.ts";
import { removeRunFolder, runFolder } from "../../kit/run-folder.ts";
import { loadDatabase, saveDatabase } from "../../postgres/whole-database.ts";
import { migrate, pendingMigrations } from "../../store/migrate.ts";
import { firstDatabaseUid, pathsIn, type Config } from "../config.ts";
import type { MachineParts } from "../setup/machine.ts";

/** How many copies of the control plane's database are kept, the newest ones. */
const copiesKept = 3;

type Programs = Pick<MachineParts, "postgresBin" | "pgDump" | "pgRestore" | "bwrap">;

/** Writes the control plane's database to a file that `pg_restore` reads, and returns its path. Keeps the newest copies. */
export async function copyControlDatabase(
  config: Config,
  { connection, programs }: { readonly connection: PoolConfig; readonly programs: Programs },
): Promise<string> {
  const folder = pathsIn(config.dataDir).controlCopies;
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const file = join(folder, `${new Date().toISOString().replaceAll(":", "")}.dump`);
  await onDiskOf(folder, () => saveDatabase({ connection, file: `${file}.new`, program: programs.pgDump }));
  await runOk({ file: "mv", args: ["--", `${file}.new`, file] });
  const copies = (await readdir(folder)).toSorted();
  const kept = copies.filter((name) => name.endsWith(".dump")).slice(-copiesKept);
  for (const name of copies.filter((each) => !kept.includes(each))) await rm(join(folder, name));
  return file;
}

/**
 * Before a start migrates the control plane's database: copies it, and tries the migrations on the copy. Throws when they fail; the database
 * is then as it was. Does nothing for an empty database, without pending migrations, and, except for a warning, for one of BERTH_DATABASE_URL.
 */
export async function rehearsePending(
  config: Config,
  { connection, programs, log }: { readonly connection: PoolConfig; readonly programs: Programs; readonly log: Log },
): Promise<void> {
  const pending = await pendingMigrations({ connection });
  if (pending.length === 0) return;
  if (config.databaseUrl !== null)
    return log.warn({ pending }, "the server of BERTH_DATABASE_URL is migrated without a copy: its operator makes one");
  const copy = await copyControlDatabase(config, { connection, programs });
  await rehearseMigrations(config, programs, copy);
  log.info({ copy, pending }, "copied the database and tried its migrations on the copy");
}

/** How long a rehearsal may take, and the next one waits for it. */
export const rehearsalTimeoutMs = 60 * 60_000;

/** Migrates a copy in an instance that exists only for this. Throws when a migration fails. Waits for a rehearsal that still runs. */
export async function rehearseMigrations(config: Config, programs: Programs, copy: string): Promise<void> {
  const dir = join(config.dataDir, "rehearsal");
  await withFolderLock(`${dir}.lock`, () => rehearseIn(dir, { config, programs, copy }), rehearsalTimeoutMs);
}

async function rehearseIn(
  dir: string,
  { config, programs, copy }: { readonly config: Config; readonly programs: Programs; readonly copy: string },
): Promise<void> {
  const server = createLocalServer({
    ...{ binDir: programs.postgresBin ?? "/nonexistent", bwrap: programs.bwrap, dir, port: null },
    socketDir: join(runFolder(dir), "server"),
    uid: config.isRoot ? firstDatabaseUid(config) - 1 : null,
  });
  const discard = async () => {
    await server.stop();
    removeRunFolder(dir);
    await rm(dir, { recursive: true, force: true });
  };
  // A rehearsal that was interrupted.
  await discard();
  try {
    await mkdir(dir, { mode: 0o700 });
    await server.ensure();
    const connection = server.superuserConnection("postgres");
    await loadDatabase({ connection, file: copy, program: programs.pgRestore });
    await migrate({ connection });
  } finally {
    await discard();
  }
}
