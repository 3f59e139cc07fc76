import { claimPrimary, liveControlPlanes, type Primary } from "../features/control-planes/control-planes.ts";
import type { Log } from "../kit/log.ts";
import type { Db } from "../store/database.ts";
import type { Config } from "./config.ts";
import { StartRefused } from "./start-refused.ts";

/**
 * Makes this process the primary of its database: repositories, applications and databases lie in its data folder, so that no other folder
 * can take its place by itself. A database of the folder's own has no other.
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

/** A process that is not the primary shares a database, which it cannot start by itself. */
export function requireSharedDatabase(config: Config): void {
  if (config.roles.includes("git") || config.databaseUrl !== null) return;
  throw new StartRefused(
    `The roles ${config.roles.join(", ")} work for a primary control plane on another data folder. Set BERTH_DATABASE_URL to its database, and BERTH_KEY_FILE to a copy of its secrets.key.`,
  );
}
