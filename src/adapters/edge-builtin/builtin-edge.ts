import { mkdirSync, rmSync } from "node:fs";
import type { Log } from "../../kit/log.ts";
import { ProcessWatch } from "../../kit/process-watch.ts";
import { identify, isAlive, sendSignal } from "../../kit/processes.ts";
import { until } from "../../kit/until.ts";
import { replaceFile } from "../../kit/whole-file.ts";
import type { CertificateTable, Edge, EdgeEntrance, EdgeStatus, EdgeUsage, RouteTable } from "../../ports/edge.ts";
import { callEdge } from "./call-edge.ts";
import { EdgeProcesses } from "./edge-processes.ts";
import { targetKey } from "./target.ts";
import type { EdgeRecord } from "./edge-record.ts";
import { controlSocket, edgePaths, fingerprintOf, probeHeader, probeKeyOf } from "./edge-settings.ts";
import { byName, compareRoutes, type RouteChanges, type RoutesByName } from "./route-changes.ts";

/** Settings of the built-in edge. */
export interface BuiltinEdgeOptions {
  readonly listenHost: string;
  /** 0 for any free port, as in tests. */
  readonly listenPort: number;
  /** The port for TLS on the same host; if missing, the edge does not listen for TLS. */
  readonly listenTlsPort?: number | null;
  /** A folder for this edge alone, created if missing. Two edges must not share one. */
  readonly stateDir: string;
  readonly log: Log;
  /** The Node binary that runs the edge process; default: the one of this process. */
  readonly nodeBin?: string;
  /** For root: the user that the edge process switches to once it listens; nothing else may run as that user. If missing, it stays root. */
  readonly uid?: number;
  /** The path of setpriv(1), which keeps the edge process from regaining privileges that it has dropped. */
  readonly setpriv?: string | null;
  /** How long a replica may send nothing, before its response (then 504) or in the middle of it. Default 300 s. */
  readonly upstreamTimeoutMs?: number;
  /** The most bytes in the body of a request to an application; 0, the default: no limit. */
  readonly maxBodyBytes?: number;
  /** How long a client may take to send a request's head. Default 15 s. */
  readonly headTimeoutMs?: number;
  /** How long a replaced edge process keeps open requests and WebSockets. Default 1 h. */
  readonly drainLimitMs?: number;
}

/** The built-in edge. `detach` stops watching the edge process but leaves it serving, for a control plane that stops. */
export interface BuiltinEdge extends Edge {
  detach(): void;
}

const saveAfterMs = 100;
const absent = { running: false, listen_tls: null, route_version: 0, certificate_version: 0 };

/** Creates an edge that needs only Node and serves in a process that outlives this one. Nothing starts before the first `apply`. */
export function createBuiltinEdge(options: BuiltinEdgeOptions): BuiltinEdge {
  return new ControlledEdge(options);
}

/** The route table that was last sent to the edge processes. */
interface Pushed {
  readonly sockets: ReadonlySet<string>;
  readonly table: RouteTable;
  readonly known: RoutesByName;
}

class ControlledEdge implements BuiltinEdge {
  readonly kind = "builtin";
  readonly #options: BuiltinEdgeOptions;
  readonly #processes: EdgeProcesses;
  readonly #probeKey: string;
  #table: RouteTable | undefined;
  #certificates: CertificateTable | undefined;
  /** Records which process has which version of the certificates. */
  #certified = "";
  #last: Promise<unknown> = Promise.resolve();
  readonly #watch: ProcessWatch;
  #current: EdgeRecord | undefined;
  #pushed: Pushed | undefined;
  #saved: RoutesByName | undefined;
  #saving: NodeJS.Timeout | undefined;
  #saveFailed = false;

  constructor(options: BuiltinEdgeOptions) {
    this.#options = options;
    this.#probeKey = probeKeyOf(options.stateDir);
    const settings = {
      listen_host: options.listenHost,
      listen_port: options.listenPort,
      listen_tls_port: options.listenTlsPort ?? null,
      state_dir: options.stateDir,
      upstream_timeout_ms: options.upstreamTimeoutMs ?? 300_000,
      head_timeout_ms: options.headTimeoutMs ?? 15_000,
      connect_timeout_ms: 5000,
      max_body_bytes: options.maxBodyBytes ?? 0,
      drain_limit_ms: options.drainLimitMs ?? 3_600_000,
      probe_key: this.#probeKey,
      uid: options.uid ?? null,
    };
    const programs = { node: options.nodeBin ?? process.execPath, setpriv: options.setpriv ?? null };
    this.#processes = new EdgeProcesses({ ...settings, fingerprint: fingerprintOf(settings) }, programs, options.log);
    this.#watch = new ProcessWatch({
      logFile: edgePaths(options.stateDir).log,
      hasEnded: () => this.#current !== undefined && !isAlive(this.#current.identity),
      restart: () => this.#runExclusive(() => this.#restart()),
      endIfHung: () => this.#processes.endIfHung(),
    });
  }

  apply(routes: RouteTable): Promise<void> {
    return this.#runExclusive(async () => {
      if (this.#table === undefined || routes.version > this.#table.version) this.#table = routes;
      this.#watch.start();
      try {
        this.#current = await this.#processes.ensure();
      } finally {
        // Push even if the process could not be replaced: the one that still serves needs the newest routes.
        if (this.#processes.current() !== undefined) await this.#push(this.#table);
        await this.#pushCertificates();
      }
    });
  }

  applyCertificates(table: CertificateTable): Promise<void> {
    return this.#runExclusive(async () => {
      if (this.#certificates !== undefined && table.version <= this.#certificates.version) return;
      this.#certificates = table;
      this.#saveCertificates(table);
      await this.#pushCertificates();
    });
  }

  async openRequests(): Promise<ReadonlyMap<string, number>> {
    const sum = new Map<string, number>();
    for (const counts of (await this.#askAll("GET", "/open")) as Record<string, number>[]) {
      for (const [key, open] of Object.entries(counts)) sum.set(key, (sum.get(key) ?? 0) + open);
    }
    return sum;
  }

  async measure(): Promise<readonly EdgeUsage[]> {
    const counted = new Map<string, EdgeUsage>();
    for (const usage of ((await this.#askAll("GET", "/usage")) as EdgeUsage[][]).flat()) {
      const key = `${usage.counter} ${usage.project_id}`;
      // A process that has just stopped also appears in its successor's counts, so keep the higher count.
      if (usage.requests >= (counted.get(key)?.requests ?? 0)) counted.set(key, usage);
    }
    return [...counted.values()];
  }

  async entrance(): Promise<EdgeEntrance | null> {
    const record = this.#processes.current();
    if (record === undefined) return null;
    const { listen_host: host, port, tls_port = null } = record;
    return { host, port, tls_port, headers: { [probeHeader]: this.#probeKey } };
  }

  async observe(): Promise<EdgeStatus> {
    const record = this.#processes.current();
    if (record === undefined) return { ...absent, listen: null, detail: "The edge process is not running." };
    const listen = targetKey(record.listen_host, record.port);
    try {
      const status = (await callEdge(this.#socket(record), "GET", "/status")) as {
        version: number;
        certificate_version: number;
        connections: number;
      };
      const detail = `Serves ${listen} with ${status.connections} connections since ${record.started_at}.`;
      const { tls_port = null } = record;
      const listen_tls = tls_port === null ? null : targetKey(record.listen_host, tls_port);
      const versions = {
        route_version: Math.max(0, status.version),
        certificate_version: Math.max(0, status.certificate_version),
      };
      return { ...versions, running: true, listen, listen_tls, detail };
    } catch (error) {
      return { ...absent, listen, detail: `The edge process does not answer: ${(error as Error).message}` };
    }
  }

  stop(graceMs: number): Promise<void> {
    this.detach();
    return this.#runExclusive(async () => {
      const pids = (await this.#processes.sockets()).map((path) =>
        Number.parseInt(path.slice(path.lastIndexOf("/") + 1), 10),
      );
      const ending = pids.map((pid) => this.#end(pid, graceMs));
      await Promise.all(ending);
      rmSync(edgePaths(this.#options.stateDir).current, { force: true });
      this.#current = undefined;
    });
  }

  detach(): void {
    if (this.#saving !== undefined) this.#save();
    this.#watch.stop();
  }

  async #end(pid: number, graceMs: number): Promise<void> {
    const identity = identify(pid);
    if (identity === undefined) return;
    try {
      await callEdge(controlSocket(this.#options.stateDir, pid), "POST", "/drain", { limit_ms: graceMs, hurry: true });
    } catch {
      // The control socket did not answer. Without a matching record, the pid belongs to another program by now; with one, our process
      // hangs.
      if (this.#processes.current()?.identity.pid !== pid) return;
    }
    const ended = await until(() => (isAlive(identity) ? undefined : true), {
      timeoutMs: graceMs + 2000,
      atMostMs: 50,
    });
    if (ended === undefined) sendSignal(identity, "SIGKILL");
  }

  /** Sends the table to every edge process: those that are draining need the newest targets, too. */
  async #push(table: RouteTable | undefined): Promise<void> {
    const current = this.#processes.current();
    if (table === undefined || current === undefined) return;
    const { known, changes } = this.#changesTo(table);
    const sockets = await this.#processes.sockets();
    const pushes = sockets.map(async (socket) => {
      const confirmed = this.#pushTo(socket, table, changes);
      if (socket === this.#socket(current)) this.#confirm(table, known, await confirmed);
      else await confirmed.catch(() => this.#pushTo(socket, table, undefined)).catch(() => {});
    });
    await Promise.all(pushes);
    this.#pushed = { sockets: new Set(sockets), table, known };
  }

  /** Compares with the table that was pushed last. If nothing changed, returns the previous map as `known`. */
  #changesTo(table: RouteTable): { known: RoutesByName; changes: RouteChanges | undefined } {
    const last = this.#pushed;
    const known = byName(table.routes);
    if (last === undefined) return { known, changes: undefined };
    const { changed, removed } = compareRoutes(last.known, known);
    const versions = { from: last.table.version, version: table.version };
    const isSame = changed.length + removed.length === 0;
    return { known: isSame ? last.known : known, changes: { ...versions, changed, removed } };
  }

  /** Sends only the changes to a process that has the preceding table, otherwise the whole table. */
  async #pushTo(socket: string, table: RouteTable, changes: RouteChanges | undefined): Promise<number> {
    const last = this.#pushed;
    const isNext = JSON.stringify(last?.table.challenge) === JSON.stringify(table.challenge);
    if (changes !== undefined && isNext && last?.sockets.has(socket)) {
      const { version } = (await callEdge(socket, "PUT", "/changes", changes)) as { version: number };
      if (version >= table.version) return version;
    }
    return ((await callEdge(socket, "PUT", "/routes", table)) as { version: number }).version;
  }

  /**
   * Saves the active table a moment later, so that an edge process that crashes restarts with it even while the database is unavailable:
   * writing 10,000 routes takes 20 ms, for which a switch must not wait.
   */
  #confirm(table: RouteTable, known: RoutesByName, version: number): void {
    if (version > table.version) {
      this.#options.log.warn(
        { version: table.version, in_force: version },
        "The edge has a newer route table and ignores this one.",
      );
    } else if (this.#saved !== known) this.#saving ??= setTimeout(() => this.#save(), saveAfterMs).unref();
  }

  /** The edge already serves this table. If a full disk prevents saving it, a later push saves it. */
  #save(): void {
    clearTimeout(this.#saving);
    this.#saving = undefined;
    if (this.#pushed === undefined) return;
    const { table, known } = this.#pushed;
    try {
      replaceFile(edgePaths(this.#options.stateDir).routes, JSON.stringify(table));
      this.#saved = known;
      this.#saveFailed = false;
    } catch (error) {
      const message =
        "The edge's copy of the routes can't be written; a crash of the edge now would bring back an older one.";
      if (!this.#saveFailed) this.#options.log.error({ error: (error as Error).message }, message);
      this.#saveFailed = true;
    }
  }

  /** Sends the certificates to the current process only; draining ones accept no new connections and keep the TLS sessions they have. */
  async #pushCertificates(): Promise<void> {
    const [table, current] = [this.#certificates, this.#processes.current()];
    if (table === undefined || current === undefined) return;
    const certified = `${current.identity.pid} ${table.version}`;
    if (this.#certified === certified) return;
    const { version } = (await callEdge(this.#socket(current), "PUT", "/certificates", table)) as { version: number };
    const message = "The edge has newer certificates and ignores these.";
    if (version > table.version) this.#options.log.warn({ version: table.version, in_force: version }, message);
    this.#certified = certified;
  }

  /** Saves the table, which holds private keys. A process reads it on start, before it drops its privileges. */
  #saveCertificates(table: CertificateTable): void {
    try {
      mkdirSync(this.#options.stateDir, { recursive: true, mode: 0o700 });
      replaceFile(edgePaths(this.#options.stateDir).certificates, JSON.stringify(table));
    } catch (error) {
      const message =
        "The edge's copy of the certificates can't be written; a crash of the edge now would lose new ones.";
      this.#options.log.error({ error: (error as Error).message }, message);
    }
  }

  async #askAll(method: "GET", path: string): Promise<unknown[]> {
    const asked = (await this.#processes.sockets()).map((socket) =>
      callEdge(socket, method, path).catch(() => undefined),
    );
    return (await Promise.all(asked)).filter((answer) => answer !== undefined);
  }

  #socket(record: EdgeRecord): string {
    return controlSocket(this.#options.stateDir, record.identity.pid);
  }

  async #restart(): Promise<void> {
    if (!this.#watch.isRunning) return;
    this.#options.log.error(
      { pid: this.#current?.identity.pid },
      "The edge process ended unexpectedly; Berth starts it again.",
    );
    try {
      this.#current = await this.#processes.ensure();
      await this.#push(this.#table);
      await this.#pushCertificates();
    } catch (error) {
      this.#options.log.error({ error: (error as Error).message }, "The edge process could not be started again.");
    }
  }

  #runExclusive<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.#last.then(work, work);
    this.#last = turn.catch(() => {});
    return turn;
  }
}
