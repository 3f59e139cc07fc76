import { join } from "node:path";
import type { PoolConfig } from "pg";
import { createLocalServer, type LocalServer } from "../adapters/postgres-host-local/server.ts";
import type { Log } from "../kit/log.ts";
import { removeRunFolder, runFolder } from "../kit/run-folder.ts";
import type { Config } from "./config.ts";
import { pathsIn } from "./config.ts";
import { isDataFolderHeld } from "./data-folder.ts";
import { StartRefused } from "./start-refused.ts";
import type { MachineParts } from "./setup/machine.ts";

/** The control plane's own database: how to connect to it, and how to stop it if Berth runs it. */
export interface OwnDatabase {
  readonly connection: PoolConfig;
  /** From now on, restarts the server whenever it ends by itself, until `stop` or `detach`. */
  guard(): void;
  /** Ends the guard. Stops the server only if this process started it and no platform uses it. */
  detach(): Promise<void>;
  stop(): Promise<void>;
}

const tuning = { max_connections: "100", shared_buffers: "64MB" };

/** Starts the control plane's own PostgreSQL instance, or uses the one of `BERTH_DATABASE_URL`. */
export async function openOwnDatabase(
  config: Config,
  parts: Pick<MachineParts, "postgresBin" | "bwrap" | "missing">,
  log: Log,
): Promise<OwnDatabase> {
  if (config.databaseUrl !== null)
    return {
      connection: { connectionString: config.databaseUrl },
      guard: () => {},
      detach: async () => {},
      stop: async () => {},
    };
  if (parts.postgresBin === null) {
    const missing = parts.missing.find((each) => each.part.toLowerCase().startsWith("postgres"));
    throw new StartRefused(
      `PostgreSQL 15 or later was not found. Install it (${missing?.command ?? "postgresql"}), or set BERTH_DATABASE_URL.`,
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
  const wasRunning = (await server.observe()) === "running";
  await server.ensure();
  let guard: { end(): Promise<void> } | undefined;
  return {
    connection: server.superuserConnection("postgres"),
    guard: () => void (guard ??= guardServer(server, log)),
    async detach() {
      await guard?.end();
      if (!wasRunning && !isDataFolderHeld(config.dataDir)) await server.stop();
    },
    async stop() {
      await guard?.end();
      await server.stop().finally(() => removeRunFolder(config.dataDir));
    },
  };
}

const pollEveryMs = 2000;

/**
 * Restarts the server when its postmaster has ended; until then the API answers 503 and applications continue. A server that only fails to
 * answer is left alone: it may be slow under load, and it recovers from a crash on its own.
 */
export function guardServer(
  server: Pick<LocalServer, "observe" | "hasProcess" | "ensure">,
  log: Log,
): { end(): Promise<void> } {
  let mending: Promise<void> = Promise.resolve();
  let isMending = false;
  const look = async () => {
    if ((await server.observe()) === "running" || server.hasProcess()) return;
    log.error({}, "the control plane's database exited; starting it again");
    await server.ensure();
  };
  const timer = setInterval(() => {
    if (isMending) return;
    isMending = true;
    mending = look()
      .catch((error: unknown) => log.error({ err: error }, "the control plane's database could not be started"))
      .finally(() => (isMending = false));
  }, pollEveryMs);
  return {
    async end() {
      clearInterval(timer);
      await mending;
    },
  };
}
