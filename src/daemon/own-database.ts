import { join } from "node:path";
import type { PoolConfig } from "pg";
import { createLocalServer, type LocalServer } from "../adapters/postgres-host-local/server.ts";
import type { Log } from "../kit/log.ts";
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
export async function openOwnDatabase(config: Config, parts: MachineParts, log: Log): Promise<OwnDatabase> {
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
  const guard = guardServer(server, log);
  return {
    connection: server.superuserConnection("postgres"),
    async stop() {
      await guard.end();
      await server.stop();
    },
  };
}

const lookEveryMs = 2000;

/** Starts the server again when it ended by itself: until then the API answers 503 and applications go on. */
function guardServer(server: LocalServer, log: Log): { end(): Promise<void> } {
  let mending: Promise<void> = Promise.resolve();
  let isMending = false;
  const look = async () => {
    if ((await server.observe()) === "running") return;
    log.error({}, "the control plane's database ended; starting it again");
    await server.ensure();
  };
  const timer = setInterval(() => {
    if (isMending) return;
    isMending = true;
    mending = look()
      .catch((error: unknown) => log.error({ err: error }, "the control plane's database could not be started"))
      .finally(() => (isMending = false));
  }, lookEveryMs);
  return {
    async end() {
      clearInterval(timer);
      await mending;
    },
  };
}
