import { existsSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { PoolConfig } from "pg";
import { createLocalServer, type LocalServer } from "../adapters/postgres-host-local/server.ts";
import {
  claimPrimary,
  findPrimary,
  liveControlPlanes,
  type Primary,
} from "../features/control-planes/control-planes.ts";
import { isWithin } from "../kit/day-hours.ts";
import type { Log } from "../kit/log.ts";
import { removeRunFolder, runFolder } from "../kit/run-folder.ts";
import type { Db } from "../store/database.ts";
import { keyProblem } from "../store/rotate-vault.ts";
import { StartRefused, firstDatabaseUid, pathsIn, type Config } from "./config.ts";
import { isDataFolderHeld } from "./data-folder.ts";
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
    uid: config.isRoot ? firstDatabaseUid(config) - 1 : null,
    settings: tuning,
  });
  const wasRunning = (await server.observe()) === "running";
  await server.ensure().catch((error: unknown) => {
    const { message } = error as Error;
    throw new StartRefused(`The control plane's database cannot be started: ${message}`, { cause: error });
  });
  let guard: { end(): Promise<void> } | undefined;
  return {
    connection: server.superuserConnection("postgres"),
    guard: () => void (guard ??= guardServer(server, log, () => isWithin(config.restartHours, new Date()))),
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
 * answer is left alone: it may be slow under load, and it recovers from a crash on its own. While `mayRestart`, one whose PostgreSQL an update
 * has replaced is restarted; the API answers 503 for that second.
 */
export function guardServer(
  server: Pick<LocalServer, "observe" | "hasProcess" | "isReplaced" | "stop" | "ensure">,
  log: Log,
  mayRestart: () => boolean,
): { end(): Promise<void> } {
  let mending: Promise<void> = Promise.resolve();
  let isMending = false;
  const look = async () => {
    if (mayRestart() && (await server.isReplaced())) {
      log.info({}, "an update has replaced PostgreSQL: the control plane's database is restarted");
      await server.stop();
    } else {
      if ((await server.observe()) === "running" || server.hasProcess()) return;
      log.error({}, "the control plane's database exited; starting it again");
    }
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
