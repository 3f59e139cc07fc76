import { randomBytes } from "node:crypto";
import { existsSync, readFileSync, rmSync } from "node:fs";
import { capLog } from "../../kit/cap-log.ts";
import { isAlive, runsReplacedFiles } from "../../kit/processes.ts";
import { chooseConfinement } from "../../postgres/confinement.ts";
import type { DatabaseSpec } from "../../ports/postgres-host.ts";
import type { ServerConnection } from "../../postgres/connection.ts";
import type { ProjectServer } from "../../postgres/project-work.ts";
import type { ControlGroup, ControlGroups } from "./control-groups.ts";
import { findProcesses, findSession } from "./find-processes.ts";
import { withFolderLock } from "./folder-lock.ts";
import { configure, engineVersionOf, initialise, isInitialised, requireSameVersion } from "./initialise.ts";
import { ensureFolder, ensureSecret, instanceFiles, readRunning, writeWhole } from "./instance-files.ts";
import { limitMemory } from "./memory-limit.ts";
import { startServer } from "./start-server.ts";
import { stopServer } from "./stop-server.ts";
import { askServer, superuserConnection } from "./superuser-connection.ts";

export interface LocalServerOptions {
  /** The folder with `initdb` and `postgres`, all of one major version, 15 or later. */
  readonly binDir: string;
  /** The bubblewrap program, or null. Required for root. */
  readonly bwrap: string | null;
  /** The instance's own folder, created if missing. It may be inside a folder that only root can enter. */
  readonly dir: string;
  /** The folder of the Unix socket; its path must be short (see `runFolder`). Created if missing; other users must be able to enter its parent. */
  readonly socketDir: string;
  /** The TCP port on 127.0.0.1, outside the machine's range for outgoing connections; null for the Unix socket only. */
  readonly port: number | null;
  /** For root: the unprivileged user that the server runs as, which needs no name on the machine. Otherwise null. */
  readonly uid: number | null;
  /** `shared`: any user can reach the socket and must know a password. Default `private`: only the server's own user and root can. */
  readonly socketMode?: "private" | "shared";
  /** The limit for all of its processes together; if missing, there is none. */
  readonly group?: ControlGroup;
  /** Settings in `postgresql.conf` that replace those of a project's small instance. */
  readonly settings?: Readonly<Record<string, string>>;
  /** Whether the folder copies another instance: only the platform reaches its socket, and no port of it, and a failed start is not repeated. */
  readonly isRecovered?: boolean;
  /** Whether its log is archived: the segment that is being written is stored again and again, whole, so a new instance has small ones. */
  readonly isArchived?: boolean;
}

/** A project's instance: its server, and where and as whom it runs. */
export interface Instance {
  readonly server: LocalServer;
  readonly dir: string;
  readonly uid: number | null;
  readonly port: number;
  readonly socketDir: string;
}

export interface HistoryPlace extends Pick<LocalServerOptions, "binDir" | "bwrap"> {
  readonly dir: string;
  readonly runBase: string | undefined;
  readonly groups: ControlGroups | undefined;
  find(id: string): Instance | undefined;
  idOf(instance: Instance): string;
  projectServer(instance: Instance): ProjectServer;
  apply(instance: Instance, spec: DatabaseSpec): Promise<unknown>;
  freePort(): Promise<number>;
  /** Gives a new instance its port, which it keeps. `except` turned out to be in use. */
  assignPort(spec: DatabaseSpec, except?: number): Promise<number>;
  destroy(id: string): Promise<void>;
}

/** One PostgreSQL instance. It outlives the process that started it. */
export interface LocalServer {
  /** Creates and starts the instance as needed; resolves when its superuser can log in. Idempotent. Aborting `signal` only stops waiting. */
  ensure(signal?: AbortSignal): Promise<void>;
  /** Returns the instance's state. Changes nothing, except that it limits the size of the instance's log. */
  observe(): Promise<"absent" | "stopped" | "running">;
  /** Returns whether its postmaster is alive, even if it is too busy to respond or recovers after a crash. */
  hasProcess(): boolean;
  /** Returns whether it runs files that an update has replaced by a working version of the same major one. */
  isReplaced(): Promise<boolean>;
  /** Limits the memory of one session, by its process id in PostgreSQL. A session that is gone is no error. */
  limitSession(processId: number, memoryBytes: number): Promise<void>;
  /** Stops its processes and keeps its data. Idempotent. */
  stop(): Promise<void>;
  /** Returns the superuser's login, which holds a secret. Throws before the first `ensure`. */
  superuserConnection(database?: string): ServerConnection;
}

/** Creates the handle of a PostgreSQL server in a folder: a project's, or the control plane's own. Nothing happens before `ensure`. */
export function createLocalServer(options: LocalServerOptions): LocalServer {
  const address = { dir: options.dir, socketDir: options.socketDir, port: options.port };
  return {
    ensure: (signal) => ensureServer(options, signal),
    observe: () => observeServer(options),
    hasProcess: () => isRunning(options),
    isReplaced: () => isReplaced(options),
    async limitSession(processId, memoryBytes) {
      const postmaster = readRunning(options.dir);
      const session = postmaster && findSession(postmaster.pid, processId);
      if (session !== undefined) await limitMemory({ pid: session, uid: uidOf(options) }, memoryBytes);
    },
    stop: async () => {
      const { lock, mark, running } = instanceFiles(options.dir);
      if (!existsSync(mark)) return;
      await withFolderLock(lock, async () => {
        await stopServer(readFileSync(mark, "utf8"), uidOf(options));
        await options.group?.remove();
        // Without its mark, nothing has to look for it among the machine's processes.
        for (const file of [running, mark]) rmSync(file, { force: true });
      });
    },
    superuserConnection: (database) => superuserConnection(address, database),
  };
}

async function ensureServer(options: LocalServerOptions, signal?: AbortSignal): Promise<void> {
  const { dir, socketDir, port, settings = {}, socketMode = "private", isRecovered = false } = options;
  ensureFolder(dir, 0o700);
  if ((await observeServer(options)) === "running") return options.group?.take(ensureMark(dir), uidOf(options));
  const version = await engineVersionOf(options.binDir);
  await withFolderLock(instanceFiles(dir).lock, async () => {
    const confinement = await chooseConfinement({ binDir: options.binDir, bwrap: options.bwrap, uid: options.uid });
    ensureSecret(instanceFiles(dir).secret);
    const mark = ensureMark(dir);
    ensureFolder(socketDir, socketMode === "shared" && !isRecovered ? 0o711 : 0o700, options.uid);
    if ((await observeServer(options)) === "running") return;
    configure(confinement, dir, { port, socketDir, socketMode, overrides: settings, isRecovered });
    await initialise(confinement, dir, { socketDir, isArchived: options.isArchived ?? false });
    requireSameVersion(dir, version);
    const attempts = isRecovered ? 1 : 5;
    const plan = { dir, socketDir, port, confinement, mark, uid: uidOf(options), signal, group: options.group };
    await startServer({ ...plan, attempts });
  });
}

async function observeServer(options: LocalServerOptions): Promise<"absent" | "stopped" | "running"> {
  if (!isInitialised(options.dir)) return "absent";
  capLog(instanceFiles(options.dir).log);
  return isRunning(options) && (await askServer(options)) === "ready" ? "running" : "stopped";
}

async function isReplaced({ dir, binDir }: LocalServerOptions): Promise<boolean> {
  const postmaster = readRunning(dir);
  if (postmaster === undefined || !isAlive(postmaster) || !runsReplacedFiles(postmaster.pid)) return false;
  try {
    requireSameVersion(dir, await engineVersionOf(binDir));
    return true;
  } catch {
    // Its package is being unpacked, or gone.
    return false;
  }
}

function uidOf(options: LocalServerOptions): number {
  return options.uid ?? process.getuid?.() ?? 0;
}

/** Returns the mark that identifies the instance's processes until it is stopped; random, because any process can imitate a title. */
function ensureMark(dir: string): string {
  const { mark } = instanceFiles(dir);
  if (!existsSync(mark)) writeWhole(mark, `berth-${randomBytes(8).toString("hex")}`);
  return readFileSync(mark, "utf8");
}

function isRunning(options: LocalServerOptions): boolean {
  const known = readRunning(options.dir);
  if (known && isAlive(known)) return true;
  const { mark } = instanceFiles(options.dir);
  return existsSync(mark) && findProcesses(readFileSync(mark, "utf8"), uidOf(options)).postmaster !== undefined;
}
