import { join } from "node:path";
import type { PoolConfig } from "pg";
import { createLocalServer } from "../adapters/postgres-host-local/server.ts";
import { runFolder } from "../adapters/postgres-host-local/run-folder.ts";
import type { Config } from "./config.ts";
import { pathsIn } from "./config.ts";
import { StartRefused } from "./start-refused.ts";
import type { MachineParts } from "./setup/machine.ts";

/** The control plane's own database: where it is, and how to end it when it is ours. */
export interface OwnDatabase {
  readonly connection: PoolConfig;
  stop(): Promise<void>;
}

const tuning = { max_connections: "100", shared_buffers: "64MB" };

/** Starts the control plane's own PostgreSQL instance, or uses the one of `BERTH_DATABASE_URL`. */
export async function openOwnDatabase(config: Config, parts: MachineParts): Promise<OwnDatabase> {
  if (config.databaseUrl !== null)
    return { connection: { connectionString: config.databaseUrl }, stop: async () => {} };
  if (parts.postgresBin === null) {
    const missing = parts.missing.find((each) => each.part.toLowerCase().startsWith("postgres"));
    throw new StartRefused(
      `PostgreSQL 15 or later was not found. ${missing?.command ?? "Install postgresql"}, or set BERTH_DATABASE_URL.`,
    );
  }
  const dir = pathsIn(config.dataDir).ownPostgres;
  const server = createLocalServer({
    binDir: parts.postgresBin,
    bwrap: parts.bwrap,
    dir,
    socketDir: join(runFolder(config.dataDir), "control"),
    port: null,
    uid: config.isRoot ? config.databaseUidBase - 1 : null,
    settings: tuning,
  });
  await server.ensure();
  return { connection: server.superuserConnection("postgres"), stop: () => server.stop() };
}
