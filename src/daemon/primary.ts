import { claimPrimary, liveControlPlanes, type Primary } from "../features/control-planes/control-planes.ts";
import type { Log } from "../kit/log.ts";
import type { Db } from "../store/database.ts";
import type { Config } from "./config.ts";
import { StartRefused } from "./start-refused.ts";

/**
 * Makes this process the primary of its database, or throws `StartRefused` if another is. Repositories, applications and databases are in
 * the primary's data folder, so another folder must not replace it by itself. Without BERTH_DATABASE_URL the database is in the data folder
 * and has no other primary.
 */
export async function becomePrimary(
  config: Config,
  { db, log }: { db: Db; log: Log },
  primary: Primary,
): Promise<void> {
  const isAnyLive = (await liveControlPlanes(db)).some(({ roles }) => roles.includes("git"));
  const other = await claimPrimary(db, primary, config.databaseUrl === null || (config.replacePrimary && !isAnyLive));
  if (other === undefined) return;
  log.error({ primary: other }, "another control plane is the primary of this database");
  throw new StartRefused(
    `This database's primary control plane, with its repositories and applications, is on ${other}. Start this one with --roles=api, or with --roles=api,reconcile,edge on the same machine. Only if that data folder is lost: set BERTH_REPLACE_PRIMARY=1 once.`,
  );
}

/** Throws `StartRefused` if this process is neither the primary nor has a shared database: only the primary can start one. */
export function requireSharedDatabase(config: Config): void {
  if (config.roles.includes("git") || config.databaseUrl !== null) return;
  throw new StartRefused(
    `The roles ${config.roles.join(", ")} work for a primary control plane on another data folder. Set BERTH_DATABASE_URL to its database, and BERTH_KEY_FILE to a copy of its secrets.key.`,
  );
}
