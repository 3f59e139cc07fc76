import { createHash } from "node:crypto";
import {
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import type { Server } from "node:net";
import { dirname, join } from "node:path";
import { awaitAnswer, readThreads } from "../../kit/await-answer.ts";
import { run, startDetached } from "../../kit/exec.ts";
import type { Log } from "../../kit/log.ts";
import { identify, isAlive, runsReplacedFiles, sendSignal, type ProcessIdentity } from "../../kit/processes.ts";
import { readProcessTree } from "../../kit/process-tree.ts";
import { removeRunFolder } from "../../kit/run-folder.ts";
import { until } from "../../kit/until.ts";
import { readJson, replaceFile } from "../../kit/whole-file.ts";
import type { EdgeRequest } from "../../ports/edge.ts";
import { statusValue, readOldWorkers } from "./haproxy-answers.ts";
import { haproxyConfig } from "./haproxy-config.ts";
import { adminSocket, hostMap, masterSocket, type HaproxySettings } from "./haproxy-settings.ts";
import { pageFiles } from "./page-files.ts";
import { emptyPool, type RoutePool } from "./route-pool.ts";
import { RequestFollower } from "./request-log.ts";
import { callHaproxy } from "./runtime-socket.ts";
import { listenForWakes, wakeSocket } from "./wake-socket.ts";
import { connectionsOf, type Worker } from "./workers.ts";

/** Identifies the running HAProxy: its master process and its configuration. */
export interface HaproxyRecord {
  readonly identity: ProcessIdentity;
  /** A fingerprint of the settings, without the routes. */
  readonly settings: string;
  readonly size: number;
  readonly listen_port: number;
  readonly started_at: string;
}

export interface HaproxyPrograms {
  readonly haproxy: string;
  readonly setpriv: string | null;
  /** For root: the user that HAProxy runs as from its first instruction. */
  readonly uid: number | null;
  /** Returns how long a process has waited for a processor; by default the kernel's own count. */
  readonly waitedMs?: (pid: number) => number;
  /** How long a start may take, without the time of waiting for a processor. */
  readonly readyWithinMs?: number;
}

const recordFile = "current.json";
const usuallyReadyWithinMs = 20_000;
// Each certificate takes more than a millisecond of processor time, of which an overloaded machine gives a twentieth.
const starvedStartMs = 600_000;
const reloadTries = 3;
const reloadWithinMs = 10_000;
/** How often a replaced HAProxy is tried that did not work, for example because its package is still being unpacked. */
const tryReplacedEveryMs = 60_000;

/** Starts, reloads, finds and stops HAProxy: a master process, its worker, and the workers that a reload replaced. */
export class HaproxyProcess {
  readonly settings: HaproxySettings;
  readonly #programs: HaproxyPrograms;
  readonly #stateDir: string;
  readonly #log: Log;
  readonly #logPath: string;
  #triedAtMs = -tryReplacedEveryMs;

  constructor(settings: HaproxySettings, programs: HaproxyPrograms, stateDir: string, log: Log) {
    this.settings = settings;
    this.#programs = programs;
    this.#stateDir = stateDir;
    this.#log = log;
    this.#logPath = haproxyLog(stateDir);
  }

  current(): HaproxyRecord | undefined {
    const record = readHaproxyRecord(this.#stateDir);
    return record !== undefined && isAlive(record.identity) ? record : undefined;
  }

  /**
   * Returns whether a reload is due: the running HAProxy was configured with other settings than the current ones, or an update of a package
   * has replaced its program or a library. The new program must accept the configuration, because a master that cannot start again ends.
   */
  async isOutdated({ settings, identity: { pid } }: HaproxyRecord): Promise<boolean> {
    if (settings !== fingerprintOf(this.settings)) return true;
    if (!runsReplacedFiles(pid) || performance.now() - this.#triedAtMs < tryReplacedEveryMs) return false;
    this.#triedAtMs = performance.now();
    const [file, ...args] = this.#command(["-c", "-f", this.path("haproxy.cfg")]);
    const tried = await run({ file, args }, { timeoutMs: reloadWithinMs }).catch((error: Error) => error);
    const isGood = !(tried instanceof Error) && tried.exitCode === 0;
    if (isGood) this.#log.info({ pid }, "A file of HAProxy was replaced: it is reloaded.");
    else this.#log.warn({ err: tried }, "A file of HAProxy was replaced and does not work: the one before goes on.");
    return isGood;
  }

  path(name: string): string {
    return join(this.settings.run_dir, name);
  }

  /** Returns the pid of the worker that accepts connections; undefined when there is none or it hangs. */
  async worker(): Promise<number | undefined> {
    const info = await this.#ask(adminSocket, "show info").catch(() => undefined);
    const pid = statusValue(info ?? "", "Pid");
    return pid === undefined ? undefined : Number(pid);
  }

  async endIfHung(): Promise<void> {
    const record = this.current();
    // A HAProxy that answers with an error does not hang; the next `apply` handles it.
    if (record === undefined || (await this.#ask(adminSocket, "show info").catch(() => "")) !== undefined) return;
    if (isAlive(record.identity)) await this.kill(record);
  }

  /** Resolves with undefined when HAProxy hangs. */
  #ask(socket: string, line: string): Promise<string | undefined> {
    // Found once, because that reads all processes of the machine.
    let present: readonly ProcessIdentity[] | undefined;
    return awaitAnswer((signal) => callHaproxy(this.path(socket), line, signal), {
      processes: () => (present ??= this.#processes()),
      continued: (pid) => this.#log.warn({ pid }, "A signal had stopped HAProxy; Berth continues it."),
    });
  }

  #processes(): readonly ProcessIdentity[] {
    const master = this.current()?.identity;
    return master === undefined ? [] : [master, ...childrenOf(master.pid)];
  }

  /** Returns the worker that accepts connections, and the replaced workers that are still draining. */
  async workers(): Promise<{ present: Worker | undefined; old: Worker[] }> {
    const listed = this.#ask(masterSocket, "show proc").catch(() => undefined);
    const [pid, old = ""] = await Promise.all([this.worker(), listed]);
    const present = pid === undefined ? undefined : { pid, socket: this.path(adminSocket), prefix: "" };
    return { present, old: readOldWorkers(old).map((each) => this.oldWorker(each)) };
  }

  /** Starts HAProxy with these routes. Rejects with a message for the operator. */
  async start(pool: RoutePool): Promise<HaproxyRecord> {
    this.#writeFiles(pool);
    rmSync(this.path(adminSocket), { force: true });
    // `-L` names the data folder in the list of processes.
    const words = [
      "-W",
      "-L",
      this.#stateDir,
      "-S",
      `${this.path(masterSocket)},mode,600`,
      "-f",
      this.path("haproxy.cfg"),
    ];
    const [file, ...args] = this.#command(words);
    writeFileSync(this.#logPath, "", { mode: 0o600 });
    const pid = await startDetached({ file, args }, this.#logPath);
    const identity = identify(pid);
    const isLate = this.#deadline(pid, this.#programs.readyWithinMs ?? usuallyReadyWithinMs);
    const isStarting = () => identity !== undefined && isAlive(identity) && !isLate();
    const worker = await until(async () => (isStarting() ? await this.worker() : 0), {
      timeoutMs: starvedStartMs,
      atMostMs: 50,
    });
    if (identity === undefined || worker === undefined || worker === 0) {
      if (identity !== undefined) sendSignal(identity, "SIGKILL");
      throw new Error(this.#whyFailed());
    }
    this.#log.info({ pid, port: this.settings.listen_port }, "HAProxy is running.");
    try {
      return this.#remember(identity, pool, new Date().toISOString());
    } catch (error) {
      // Without its record no later start would find it, and it would keep the port.
      await this.#killAll(identity);
      throw error;
    }
  }

  /** Replaces the worker by one with a new configuration, without losing a request. The old worker finishes its open requests. */
  async reload(record: HaproxyRecord, pool: RoutePool): Promise<HaproxyRecord> {
    const before = await this.worker();
    this.#writeFiles(pool);
    let replaced: number | undefined;
    // A signal that reaches the master while it re-executes itself is lost, so send it again.
    for (let i = 0; i < reloadTries && replaced === undefined; i += 1) {
      sendSignal(record.identity, "SIGUSR2");
      const isLate = this.#deadline(record.identity.pid, reloadWithinMs);
      const next = async () => (isLate() ? 0 : this.#workerAfter(before));
      replaced = (await until(next, { timeoutMs: starvedStartMs, atMostMs: 50 })) || undefined;
    }
    if (replaced === undefined) throw new Error(this.#whyFailed());
    this.#log.info({ worker: replaced, backends: pool.size }, "HAProxy was reloaded.");
    return this.#remember(record.identity, pool, record.started_at);
  }

  /** Returns a function that says whether this much time has passed, not counting the time in which the process waited for a processor. */
  #deadline(pid: number, withinMs: number): () => boolean {
    const { waitedMs = (of: number) => readThreads(of)[0]?.waitedMs ?? 0 } = this.#programs;
    const sinceMs = performance.now() - waitedMs(pid);
    return () => performance.now() - waitedMs(pid) - sinceMs > withinMs;
  }

  async #workerAfter(before: number | undefined): Promise<number | undefined> {
    const now = await this.worker();
    return now === before ? undefined : now;
  }

  /** Stops master and workers once no request is open, or when `graceMs` is over. */
  async end(record: HaproxyRecord, graceMs: number, workers: readonly Worker[]): Promise<void> {
    // Also collect the master's children: a worker that does not respond is missing from `workers` and would keep the port.
    const identities = [...childrenOf(record.identity.pid), ...workers.flatMap(({ pid }) => identify(pid) ?? [])];
    const ended = () => (isAlive(record.identity) ? undefined : true);
    if (graceMs > 0) {
      sendSignal(record.identity, "SIGUSR1");
      await until(async () => ended() ?? ((await this.#isIdle(workers)) ? true : undefined), {
        timeoutMs: graceMs,
        atMostMs: 50,
      });
    }
    sendSignal(record.identity, "SIGTERM");
    await until(ended, { timeoutMs: 2000, atMostMs: 50 });
    for (const identity of [record.identity, ...identities]) sendSignal(identity, "SIGKILL");
    rmSync(join(this.#stateDir, recordFile), { force: true });
    removeRunFolder(this.#stateDir);
  }

  /** Returns whether nothing is open to any worker. A worker that has stopped accepting responds only through the master. */
  async #isIdle(workers: readonly Worker[]): Promise<boolean> {
    const open = workers.map(async ({ pid }) => {
      const connections = await connectionsOf(this.oldWorker(pid)).catch(() => undefined);
      return connections?.every(({ used }) => used === 0) ?? !existsSync(`/proc/${pid}`);
    });
    return (await Promise.all(open)).every((idle) => idle);
  }

  /** Returns how to reach a worker that is draining after a reload or a stop. */
  oldWorker(pid: number): Worker {
    return { pid, socket: this.path(masterSocket), prefix: `@!${pid} ` };
  }

  async kill(record: HaproxyRecord): Promise<void> {
    this.#log.error({ pid: record.identity.pid }, "HAProxy does not answer; Berth ends it.");
    await this.#killAll(record.identity);
  }

  async #killAll(master: ProcessIdentity): Promise<void> {
    for (const identity of [...childrenOf(master.pid), master]) sendSignal(identity, "SIGKILL");
    await until(() => (isAlive(master) ? undefined : true), { timeoutMs: 5000 });
  }

  has = (name: string): boolean => existsSync(this.path(name));

  /** Writes a file into HAProxy's folder, readable for its user only. */
  write(name: string, text: string): void {
    const path = this.path(name);
    this.#ensureFolder(dirname(path));
    writeFileSync(`${path}.new`, text, { mode: 0o600 });
    this.#give(`${path}.new`);
    renameSync(`${path}.new`, path);
  }

  removeFiles(folder: string, but: readonly string[]): void {
    const names = readdirSync(this.path(folder)).map((name) => `${folder}/${name}`);
    for (const name of names) if (!but.includes(name)) rmSync(this.path(name), { force: true });
  }

  #writeFiles(pool: RoutePool): void {
    this.#ensureFolder(this.settings.run_dir);
    for (const [name, text] of pageFiles()) this.write(name, text);
    for (const script of ["drop-named-fields.lua", "limit-body.lua", "wake.lua"])
      this.write(script, readFileSync(join(import.meta.dirname, script), "utf8"));
    this.write(hostMap, Array.from(pool.hosts, ([host, value]) => `${host} ${value}\n`).join(""));
    this.write("haproxy.cfg", haproxyConfig(this.settings, pool));
  }

  listenForWakes(wake: (projectId: string) => Promise<void>): Server {
    this.#ensureFolder(this.settings.run_dir);
    return listenForWakes(this.path(wakeSocket), this.#programs.uid, wake);
  }

  followRequests(note: (requests: readonly EdgeRequest[]) => void): RequestFollower {
    return new RequestFollower(this.path(adminSocket), note);
  }

  #ensureFolder(path: string): void {
    mkdirSync(path, { recursive: true, mode: 0o700 });
    this.#give(path);
  }

  #give(path: string): void {
    const { uid } = this.#programs;
    if (uid !== null) chownSync(path, uid, uid);
  }

  /** Returns HAProxy's command. As root, setpriv switches the user first and leaves it a single capability, listening on low ports. */
  #command(words: readonly string[]): [string, ...string[]] {
    const { haproxy, setpriv, uid } = this.#programs;
    if (uid === null) return [haproxy, ...words];
    if (setpriv === null) throw new Error("HAProxy cannot run as a user of its own: setpriv (util-linux) is missing.");
    const identity = [`--reuid=${uid}`, `--regid=${uid}`, "--clear-groups"];
    const only = "-all,+net_bind_service";
    return [
      ...([setpriv, ...identity, `--inh-caps=${only}`, `--ambient-caps=${only}`, `--bounding-set=${only}`] as const),
      ...["--no-new-privs", "--", haproxy, ...words],
    ];
  }

  #remember(identity: ProcessIdentity, pool: RoutePool, started_at: string): HaproxyRecord {
    const record = {
      identity,
      settings: fingerprintOf(this.settings),
      size: pool.size,
      started_at,
      listen_port: this.settings.listen_port,
    };
    replaceFile(join(this.#stateDir, recordFile), JSON.stringify(record));
    return record;
  }

  #whyFailed(): string {
    const { listen_host, listen_port, listen_tls_port } = this.settings;
    const log = readFileSync(this.#logPath, "utf8").trim();
    const bound = /\[([^\]]*):(\d+)\]/.exec(/cannot bind socket.*/.exec(log)?.[0] ?? "");
    if (bound === null) return `HAProxy could not start. Its log ends with: ${log.slice(-2000)}`;
    const name = Number(bound[2]) === listen_tls_port ? "BERTH_EDGE_TLS_PORT" : "BERTH_EDGE_PORT";
    return `HAProxy cannot listen on ${listen_host}:${bound[2] ?? listen_port}: ${bound.input}. End the program that uses it, or set ${name} to a free port.`;
  }
}

export const haproxyLog = (stateDir: string): string => join(stateDir, "haproxy.log");

/** Reads the record of the last start; undefined when it is missing or unreadable. */
export function readHaproxyRecord(stateDir: string): HaproxyRecord | undefined {
  return readJson(join(stateDir, recordFile));
}

/** Hashes the settings and the code that creates the configuration. */
function fingerprintOf(settings: HaproxySettings): string {
  return createHash("sha256")
    .update(haproxyConfig(settings, emptyPool(0)))
    .digest("hex");
}

function childrenOf(parent: number): ProcessIdentity[] {
  return readProcessTree()
    .childrenOf(parent)
    .flatMap(({ pid }) => identify(pid) ?? []);
}
