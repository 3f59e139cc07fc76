import { existsSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { findPrimary } from "../features/control-planes/control-planes.ts";
import type { Db } from "../store/database.ts";
import { keyProblem } from "../store/rotate-vault.ts";
import { pathsIn, type Config } from "./config.ts";
import { StartRefused } from "./start-refused.ts";

/** Refuses a start that would create a new control database beside what belongs to a missing one. */
export function requireOwnDatabase(config: Config): void {
  const { ownPostgres, keyFile } = pathsIn(config.dataDir);
  if (config.databaseUrl !== null || existsSync(join(ownPostgres, "data", "PG_VERSION"))) return;
  if (existsSync(keyFile) || hasTenants(config))
    throw new StartRefused(
      `The control plane's database is missing from ${ownPostgres}, but ${config.dataDir} holds what belongs to it. Restore that folder from a copy. For a new platform, set BERTH_DATA to an empty folder.`,
    );
}

/** Refuses a start whose database or key file is not the one that belongs to this data folder, before anything is written to either. */
export async function requireMatchingData(config: Config, db: Db): Promise<void> {
  const isEmpty = (await db.selectFrom("organization").select("id").limit(1).executeTakeFirst()) === undefined;
  if (isEmpty && hasTenants(config))
    throw new StartRefused(
      `The database is empty, but ${config.dataDir} holds repositories or databases of projects. Restore the database that belongs to them. For a new platform, set BERTH_DATA to an empty folder.`,
    );
  const problem = await keyProblem(db, config.keyFile ?? pathsIn(config.dataDir).keyFile);
  if (problem !== undefined) throw new StartRefused(problem);
}

/** Writes this machine's name again if its file is lost: rows about replicas and edges use it. */
export async function restoreMachineName(config: Config, db: Db): Promise<void> {
  const file = join(config.dataDir, "machine-name");
  // In a shared database, another data folder may be the primary.
  if (config.databaseUrl !== null || existsSync(file)) return;
  const known = (await findPrimary(db))?.machine;
  if (known !== undefined) writeFileSync(file, `${known}\n`, { mode: 0o600 });
}

function hasTenants({ dataDir }: Config): boolean {
  const { repositories, databases } = pathsIn(dataDir);
  return [repositories, databases].some(
    (folder) => existsSync(folder) && readdirSync(folder).some((name) => /^(?:prj|dbs)_/.test(name)),
  );
}
