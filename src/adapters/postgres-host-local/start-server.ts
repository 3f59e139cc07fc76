import { existsSync, readFileSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { startDetached } from "../../kit/exec.ts";
import { identify, isAlive, type ProcessIdentity } from "../../kit/processes.ts";
import { until } from "../../kit/until.ts";
import { programEnvironment, type Confinement } from "../../postgres/confinement.ts";
import { confined, placesOf } from "./confinement.ts";
import type { ControlGroup } from "./control-groups.ts";
import { findProcesses } from "./find-processes.ts";
import { instanceFiles, writeWhole } from "./instance-files.ts";
import { stopServer } from "./stop-server.ts";
import { askServer, socketFile, type ServerAddress } from "./superuser-connection.ts";

export interface StartPlan extends ServerAddress {
  readonly confinement: Confinement;
  readonly mark: string;
  readonly uid: number;
  readonly attempts: number;
  readonly group?: ControlGroup | undefined;
  /** Stops waiting; the server continues to start, and the next call adopts it. */
  readonly signal?: AbortSignal | undefined;
}

// Lines of `postmaster.pid`, from 0 on.
const socketFolderLine = 4;
const statusLine = 7;
// A server that does not respond for this long while it is not recovering hangs.
const readyTimeoutMs = 300_000;

/** Starts the server, or adopts the running one, and waits for its superuser's login. Throws `PortTaken`, or with the end of its log. */
export async function startServer(plan: StartPlan): Promise<void> {
  let reason = "";
  for (let attempt = 1; attempt <= plan.attempts; attempt += 1) {
    const logStart = logSize(plan.dir);
    const outcome = await bringUp(plan);
    if (outcome === "ready") return remember(plan);
    plan.signal?.throwIfAborted();
    // Leave the server running: stopping it during recovery would make the next recovery longer. The next call adopts it.
    if (outcome === "recovering") throw new Error(`PostgreSQL in ${plan.dir} is still recovering`);
    reason = readLog(plan.dir, logStart);
    if (/could not bind|Address already in use/i.test(reason)) throw new PortTaken(plan.port);
    await stopServer(plan.mark, plan.uid);
    // A zombie keeps its pid until its parent reaps it, and shared memory lives as long as its last user.
    await sleep(150 * 2 ** attempt);
  }
  throw new Error(`PostgreSQL in ${plan.dir} does not start: ${reason.trim() || "it gave no reason"}`);
}

const portAttempts = 5;

/** Starts what listens on a port; another program may take one after it was found free. */
export async function startAtFreePort<Started>(
  nextPort: (taken?: number) => Promise<number>,
  startAt: (port: number) => Promise<Started>,
): Promise<Started> {
  let port = await nextPort();
  for (let attempt = 1; ; attempt += 1)
    try {
      return await startAt(port);
    } catch (error) {
      if (!(error instanceof PortTaken) || attempt === portAttempts) throw error;
      port = await nextPort(port);
    }
}

/** The server could not listen on its port of 127.0.0.1, because something else does. */
export class PortTaken extends Error {
  constructor(port: number | null) {
    super(`port ${port} of 127.0.0.1 is in use by another program`);
    this.name = "PortTaken";
  }
}

async function bringUp(plan: StartPlan): Promise<"ready" | "ended" | "mute" | "recovering"> {
  const found = findProcesses(plan.mark, plan.uid);
  if (found.postmaster === undefined) await stopServer(plan.mark, plan.uid);
  const process = found.postmaster ?? (await launch(plan));
  const { data } = instanceFiles(plan.dir);
  let state = "down" as Awaited<ReturnType<typeof askServer>>;
  const answer = await until(
    async () => {
      state = isStarting(data) ? "starting" : await askServer(plan);
      if (state === "ready") return "ready" as const;
      if (!isAlive(process) && findProcesses(plan.mark, plan.uid).postmaster === undefined) return "ended" as const;
      return state === "down" && hasLostSocket(data, socketFile(plan)) ? ("mute" as const) : undefined;
    },
    { timeoutMs: readyTimeoutMs, atMostMs: 20, ...(plan.signal ? { signal: plan.signal } : {}) },
  );
  return answer ?? (state === "starting" ? "recovering" : "mute");
}

/**
 * Returns whether a running server's socket file was removed, so that nothing can reach it. A missing socket or a late answer alone is no
 * reason to stop a server: on an overloaded machine it creates its socket late, and a restart adds to the load. It records the socket's
 * folder after it has created the socket, so the record is read first.
 */
export function hasLostSocket(data: string, socket: string): boolean {
  const lockFile = join(data, "postmaster.pid");
  if (!existsSync(lockFile)) return false;
  const hasListened = (readFileSync(lockFile, "utf8").split("\n")[socketFolderLine] ?? "") !== "";
  return hasListened && !existsSync(socket);
}

/** Returns whether the server says in its lock file that it takes no sessions yet. Each session that it refuses costs it a process. */
function isStarting(data: string): boolean {
  try {
    return readFileSync(join(data, "postmaster.pid"), "utf8").split("\n")[statusLine]?.trim() === "starting";
  } catch {
    return false;
  }
}

/** Starts the server; resolves with the sandbox's outermost process, or the postmaster itself without a sandbox. */
async function launch(plan: StartPlan): Promise<ProcessIdentity> {
  const { confinement, dir, socketDir, mark } = plan;
  const files = instanceFiles(dir);
  dropStaleLockFile(files.data);
  const places = placesOf(confinement, dir, socketDir);
  const settings = [
    `config_file=${places.config}/postgresql.conf`,
    `hba_file=${places.config}/pg_hba.conf`,
    `cluster_name=${mark}`,
  ];
  const program = {
    file: join(places.binDir, "postgres"),
    args: ["-D", places.data, ...settings.flatMap((setting) => ["-c", setting])],
  };
  const command = confined(confinement, program, { data: files.data, config: files.config, sockets: socketDir });
  const entering = plan.group?.enter(command) ?? command;
  const pid = await startDetached(entering, files.log, { env: { ...programEnvironment, ...outOfMemory() } });
  return identify(pid) ?? { pid, start_time: "0", boot_id: "" };
}

// Makes the OOM killer end a backend, never the postmaster, so that PostgreSQL recovers on its own. Backends get a score above the one that
// the platform was started with (`OOMScoreAdjust=` of a unit), at most 1000.
function outOfMemory(): Record<string, string> {
  const own = Number(readFileSync("/proc/self/oom_score_adj", "utf8"));
  return { PG_OOM_ADJUST_FILE: "/proc/self/oom_score_adj", PG_OOM_ADJUST_VALUE: String(Math.min(1000, own + 100)) };
}

/**
 * Removes a `postmaster.pid` whose process is not a postmaster of ours (a zombie, or a later process with the same pid): PostgreSQL can't
 * tell and would refuse to start. The file also names the old server's socket, which would make the new server look as if it had lost its
 * own. The caller has ensured that no process of the instance is alive.
 */
function dropStaleLockFile(data: string): void {
  rmSync(join(data, "postmaster.pid"), { force: true });
}

async function remember(plan: StartPlan): Promise<void> {
  await plan.group?.take(plan.mark, plan.uid);
  const { postmaster } = findProcesses(plan.mark, plan.uid);
  if (postmaster) writeWhole(instanceFiles(plan.dir).running, JSON.stringify(postmaster));
}

function logSize(dir: string): number {
  const { log } = instanceFiles(dir);
  return existsSync(log) ? statSync(log).size : 0;
}

function readLog(dir: string, from: number): string {
  const { log } = instanceFiles(dir);
  return existsSync(log) ? readFileSync(log).subarray(from).subarray(-4000).toString("utf8") : "";
}
