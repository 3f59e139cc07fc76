import { randomBytes } from "node:crypto";
import { mkdirSync } from "node:fs";
import type { Server } from "node:net";
import { join } from "node:path";
import { createKeyedMutex } from "../../kit/keyed-mutex.ts";
import { ProcessWatch } from "../../kit/process-watch.ts";
import { identify, isAlive } from "../../kit/processes.ts";
import { keptText, readJson, replaceFile } from "../../kit/whole-file.ts";
import type {
  CertificateTable,
  Edge,
  EdgeEntrance,
  EdgeRequest,
  EdgeStatus,
  EdgeUsage,
  Route,
  RouteTable,
} from "../../ports/edge.ts";
import {
  certificateCommands,
  certificateFiles,
  certificateListText,
  readLoadedCertificates,
  type CertificateFile,
} from "./certificates.ts";
import { prepareHaproxy } from "./prepare-haproxy.ts";
import { statusValue } from "./haproxy-answers.ts";
import type { HaproxyEdgeOptions } from "./haproxy-edge-options.ts";
import { haproxyLog, type HaproxyProcess, type HaproxyRecord } from "./haproxy-process.ts";
import { bracketed, certificateList, hostMap, probeHeader, usageTable } from "./haproxy-settings.ts";
import {
  backendsOf,
  backendsToGrow,
  certificateVersionKey,
  changePool,
  emptyPool,
  isOfThisForm,
  knownPart,
  versionOf,
  type PoolChange,
  type RoutePool,
} from "./route-pool.ts";
import type { RequestFollower } from "./request-log.ts";
import { changeHaproxy } from "./runtime-socket.ts";
import { UsageBook } from "./usage-book.ts";
import { readUsage } from "./usage.ts";
import { askWorker, connectionsOf, openRequestsOf, poolOf, type Worker } from "./workers.ts";

/** `detach` stops watching HAProxy but leaves it serving, for a control plane that stops. */
export interface HaproxyEdge extends Edge {
  detach(): void;
}

// For more backends than this, one query for all of them is faster than one for each.
const mostAsked = 20;
const saveAfterMs = 100;

/** Creates an edge that runs HAProxy 2.6 or later in processes that outlive this one. Nothing starts before the first `apply`. */
export function createHaproxyEdge(options: HaproxyEdgeOptions): HaproxyEdge {
  return new ControlledHaproxy(options);
}

class ControlledHaproxy implements HaproxyEdge {
  readonly kind = "haproxy";
  readonly #options: HaproxyEdgeOptions;
  readonly #probeKey: string;
  readonly #usage = new UsageBook();
  /** The pool of each worker, by pid; an unknown one is read from the worker. */
  readonly #pools = new Map<number, RoutePool>();
  #process: Promise<HaproxyProcess> | undefined;
  #table: RouteTable | undefined;
  #certificates: CertificateTable | undefined;
  #saved: readonly Route[] = [];
  readonly #unsaved = new Set<string>();
  #saving: NodeJS.Timeout | undefined;
  readonly #exclusive = createKeyedMutex();
  readonly #watch: ProcessWatch;
  #current: HaproxyRecord | undefined;
  #wakes: Server | undefined;
  #requests: RequestFollower | undefined;

  constructor(options: HaproxyEdgeOptions) {
    this.#options = options;
    mkdirSync(options.stateDir, { recursive: true, mode: 0o700 });
    // Created once per state folder, so that a HAProxy that keeps running knows it.
    this.#probeKey = keptText(join(options.stateDir, "probe-key"), () => randomBytes(24).toString("base64url"));
    this.#watch = new ProcessWatch({
      logFile: haproxyLog(options.stateDir),
      hasEnded: () => this.#current !== undefined && !isAlive(this.#current.identity),
      restart: () => this.#runExclusive(() => this.#restart()),
      endIfHung: async () => this.#current && (await this.#haproxy()).endIfHung(),
    });
  }

  apply(routes: RouteTable): Promise<void> {
    return this.#runExclusive(async () => {
      this.#table ??= readJson<RouteTable>(join(this.#options.stateDir, "routes.json"));
      if (this.#table === undefined || routes.version > this.#table.version) this.#table = routes;
      this.#watch.start();
      await this.#serve(this.#table);
    });
  }

  applyCertificates(table: CertificateTable): Promise<void> {
    return this.#runExclusive(async () => {
      this.#certificates ??= readJson<CertificateTable>(join(this.#options.stateDir, "certificates.json"));
      if (this.#certificates !== undefined && table.version <= this.#certificates.version) return;
      this.#certificates = table;
      this.#saveCopy("certificates", table);
      const haproxy = await this.#haproxy();
      const record = haproxy.current();
      const worker = record === undefined ? undefined : (await haproxy.workers()).present;
      if (record === undefined || worker === undefined) return;
      await this.#loadCertificates(haproxy, worker, table);
      const pool = await this.#pool(worker, record.size);
      const hosts = new Map(pool.hosts).set(certificateVersionKey, `${table.version}`);
      await changeHaproxy(worker.socket, worker.prefix, [
        `set map ${hostMap} ${certificateVersionKey} ${table.version}`,
      ]);
      this.#pools.set(worker.pid, { ...pool, hosts });
    });
  }

  async #loadCertificates(haproxy: HaproxyProcess, worker: Worker, table: CertificateTable): Promise<void> {
    const files = this.#writeCertificates(haproxy, table);
    // Without HTTPS, HAProxy has no crt-list to load them into; they wait in their files.
    if (haproxy.settings.listen_tls_port === null) return;
    const list = await askWorker(worker, `show ssl crt-list ${certificateList}`);
    const loaded = readLoadedCertificates(list, await askWorker(worker, "show ssl cert"));
    for (const { command, success } of certificateCommands(files, loaded)) {
      const answer = await askWorker(worker, command);
      // Report only the part before the payload, which may be a key.
      const what = command.split(" <<")[0];
      if (!success.test(answer)) throw new Error(`HAProxy refused a certificate: ${what}: ${answer.trim()}`);
    }
    haproxy.removeFiles("certificates", [certificateList, ...files.map(({ name }) => name)]);
  }

  /** Writes the files of a table, which HAProxy also reads on its next start. */
  #writeCertificates(haproxy: HaproxyProcess, table: CertificateTable | undefined): CertificateFile[] {
    const { files, unreadable } = certificateFiles(table ?? { version: 0, certificates: [] }, haproxy.has);
    if (unreadable.length > 0)
      this.#options.log.error(
        { names: unreadable },
        "A certificate cannot be read: its names are not served over HTTPS.",
      );
    for (const { name, pem } of files) if (!haproxy.has(name)) haproxy.write(name, pem);
    haproxy.write(certificateList, certificateListText(files));
    return files;
  }

  async openRequests(): Promise<ReadonlyMap<string, number>> {
    const sum = new Map<string, number>();
    // A late answer must not count as no open requests: replicas would be stopped in the middle of requests.
    for (const worker of await this.#allWorkers()) {
      const open = await Promise.all([connectionsOf(worker), openRequestsOf(worker)]).catch((error: Error) => {
        if (identify(worker.pid) !== undefined) throw error;
        return [];
      });
      for (const { target, used } of open.flat()) if (used > 0) sum.set(target, (sum.get(target) ?? 0) + used);
    }
    return sum;
  }

  async measure(): Promise<readonly EdgeUsage[]> {
    for (const worker of await this.#workers()) {
      const identity = identify(worker.pid);
      const answer = await askWorker(worker, `show table ${usageTable}`).catch(() => undefined);
      // For a worker that has just exited, the master answers with an error message.
      if (identity === undefined || answer?.startsWith("# table:") !== true) continue;
      const counter = `haproxy-${identity.boot_id.slice(0, 8)}-${identity.pid}-${identity.start_time}`;
      this.#usage.note(readUsage(counter, answer));
    }
    return this.#usage.show();
  }

  async wakeBy(wake: (projectId: string) => Promise<void>): Promise<void> {
    const haproxy = await this.#haproxy();
    this.#wakes?.close();
    this.#wakes = haproxy.listenForWakes(wake);
  }

  async reportRequests(note: (requests: readonly EdgeRequest[]) => void): Promise<void> {
    this.#requests?.close();
    this.#requests = (await this.#haproxy()).followRequests(note);
  }

  async entrance(): Promise<EdgeEntrance | null> {
    const haproxy = await this.#haproxy();
    if (haproxy.current() === undefined) return null;
    const { listen_host: host, listen_port: port, listen_tls_port: tls_port } = haproxy.settings;
    return { host, port, tls_port, headers: { [probeHeader]: this.#probeKey } };
  }

  async observe(): Promise<EdgeStatus> {
    const haproxy = await this.#haproxy();
    const { listen_host, listen_port, listen_tls_port } = haproxy.settings;
    const at = (port: number) => `${bracketed(listen_host)}:${port}`;
    const where = {
      listen: at(listen_port),
      listen_tls: listen_tls_port === null ? null : at(listen_tls_port),
      route_version: 0,
      certificate_version: 0,
    };
    const record = haproxy.current();
    if (record === undefined)
      return { ...where, running: false, listen: null, listen_tls: null, detail: "HAProxy is not running." };
    try {
      const { present: worker } = await haproxy.workers();
      if (worker === undefined) throw new Error("its worker does not answer");
      // Do not store this pool: a change may be in progress.
      const pool = this.#pools.get(worker.pid) ?? (await poolOf(worker, record.size));
      const info = await askWorker(worker, "show info");
      const detail = `HAProxy ${statusValue(info, "Version")} serves ${where.listen} with ${statusValue(info, "CurrConns")} connections since ${record.started_at}.`;
      const certificate_version = Number(pool.hosts.get(certificateVersionKey) ?? 0);
      return { ...where, running: true, route_version: Math.max(0, versionOf(pool)), certificate_version, detail };
    } catch (error) {
      return { ...where, running: false, detail: `HAProxy does not answer: ${(error as Error).message}` };
    }
  }

  stop(graceMs: number): Promise<void> {
    this.detach();
    return this.#runExclusive(async () => {
      const haproxy = await this.#haproxy();
      const record = haproxy.current();
      if (record === undefined) return;
      await this.measure().catch(() => {});
      await haproxy.end(record, graceMs, await this.#workers());
      this.#current = undefined;
      this.#pools.clear();
    });
  }

  detach(): void {
    if (this.#saving !== undefined) this.#save();
    this.#watch.stop();
    this.#wakes?.close();
    this.#requests?.close();
  }

  /** Adopts the running HAProxy, or starts one, and updates every worker to this table. */
  async #serve(table: RouteTable): Promise<void> {
    const haproxy = await this.#haproxy();
    const record = haproxy.current();
    const { present, old } = await haproxy.workers();
    if (record === undefined || present === undefined) {
      if (record !== undefined) await haproxy.kill(record);
      await this.#start(table);
    } else if (await haproxy.isOutdated(record)) await this.#reload(record, table, record.size);
    else {
      this.#current = record;
      await this.#changeOrRestart(haproxy, present, record, table);
    }
    // Clients may send one more request over a connection to a replaced worker, so update those, too.
    await Promise.all(old.map((worker) => this.#change(worker, 0, table).catch(() => {})));
    // Save after the change is confirmed, and once for several changes: writing thousands of routes takes a while.
    const isSaved =
      table.routes.length === this.#saved.length && table.routes.every((route, i) => route === this.#saved[i]);
    if (!isSaved) this.#saving ??= setTimeout(() => this.#save(), saveAfterMs).unref();
  }

  async #changeOrRestart(haproxy: HaproxyProcess, worker: Worker, record: HaproxyRecord, table: RouteTable) {
    try {
      if (!(await this.#change(worker, record.size, table))) await this.#reload(record, table, record.size * 2);
    } catch (error) {
      if ((await haproxy.worker()) !== undefined) throw error;
      await haproxy.kill(record);
      await this.#start(table);
    }
  }

  /** Updates a worker to this table; false if it has too few backends. `size` 0: a replaced worker, updated only for known projects. */
  async #change(worker: Worker, size: number, table: RouteTable): Promise<boolean> {
    const pool = await this.#pool(worker, size);
    // A replaced worker of an earlier version finishes with the routes it has.
    if (!isOfThisForm(pool)) return true;
    if (table.version <= versionOf(pool)) {
      if (table.version < versionOf(pool))
        this.#options.log.warn(
          { version: table.version, in_force: versionOf(pool) },
          "The edge has a newer route table and ignores this one.",
        );
      return true;
    }
    const wanted = size === 0 ? knownPart(pool, table) : table;
    const change = await this.#changeOf(worker, pool, wanted);
    if (change === undefined) return false;
    // The state is unknown until all commands have succeeded; after a failure, the next call reads it from the worker.
    this.#pools.delete(worker.pid);
    await changeHaproxy(worker.socket, worker.prefix, change.commands);
    this.#pools.set(worker.pid, change.next);
    return true;
  }

  /** Computes the change for this table. Queries only backends that need a server, because one without connections can be reused. */
  async #changeOf(worker: Worker, pool: RoutePool, table: RouteTable): Promise<PoolChange | undefined> {
    const change = changePool(pool, table, { has: () => true });
    const growing = backendsToGrow(change?.commands ?? []).filter((backend) => pool.servers.has(backend));
    if (growing.length === 0) return change;
    const backends = growing.length > mostAsked ? [""] : growing;
    const connections = await Promise.all(backends.map((backend) => connectionsOf(worker, backend)));
    const open = connections.flat().filter(({ used, idle }) => used + idle > 0);
    return changePool(pool, table, new Set(open.map(({ server }) => server)));
  }

  async #start(table: RouteTable): Promise<void> {
    const haproxy = await this.#haproxy();
    const pool = this.#poolFor(haproxy, table, this.#options.firstBackends ?? 64);
    await this.#options.freePorts?.();
    this.#current = await haproxy.start(pool);
    this.#requests?.moveOn();
    await this.#rememberPool(haproxy, pool);
  }

  /** Reloads HAProxy with a new configuration; the replaced worker finishes its open requests. */
  async #reload(record: HaproxyRecord, table: RouteTable, atLeast: number): Promise<void> {
    const haproxy = await this.#haproxy();
    await this.measure();
    const pool = this.#poolFor(haproxy, table, atLeast);
    this.#current = await haproxy.reload(record, pool);
    this.#requests?.moveOn();
    await this.#rememberPool(haproxy, pool);
  }

  /** Returns a pool for this table with 50 % spare backends, and writes the certificate files next to it. */
  #poolFor(haproxy: HaproxyProcess, table: RouteTable, atLeast: number): RoutePool {
    this.#certificates ??= readJson<CertificateTable>(join(this.#options.stateDir, "certificates.json"));
    this.#writeCertificates(haproxy, this.#certificates);
    const size = Math.max(atLeast, Math.ceil(backendsOf(table) * 1.5));
    const change = changePool(emptyPool(size, this.#certificates?.version ?? 0), table, new Set());
    if (change === undefined) throw new Error(`${size} backends are too few for the table.`);
    return change.next;
  }

  async #rememberPool(haproxy: HaproxyProcess, pool: RoutePool): Promise<void> {
    const worker = await haproxy.worker();
    if (worker !== undefined) this.#pools.set(worker, pool);
  }

  async #pool(worker: Worker, size: number): Promise<RoutePool> {
    const known = this.#pools.get(worker.pid);
    if (known !== undefined) return known;
    const read = await poolOf(worker, size);
    this.#pools.set(worker.pid, read);
    return read;
  }

  /** Returns all workers. Rejects if HAProxy runs but its current worker does not respond. */
  async #allWorkers(): Promise<Worker[]> {
    const haproxy = await this.#haproxy();
    const { present, old } = await haproxy.workers();
    if (present === undefined && haproxy.current() !== undefined) throw new Error("HAProxy does not answer in time.");
    return present === undefined ? old : [present, ...old];
  }

  async #workers(): Promise<Worker[]> {
    const { present, old } = await (await this.#haproxy()).workers();
    return present === undefined ? old : [present, ...old];
  }

  #haproxy(): Promise<HaproxyProcess> {
    return (this.#process ??= prepareHaproxy(this.#options, this.#probeKey));
  }

  async #restart(): Promise<void> {
    if (!this.#watch.isRunning || this.#table === undefined) return;
    this.#options.log.error({ pid: this.#current?.identity.pid }, "HAProxy ended unexpectedly; Berth starts it again.");
    try {
      await this.#serve(this.#table);
    } catch (error) {
      this.#options.log.error({ error: (error as Error).message }, "HAProxy could not be started again.");
    }
  }

  /** Saves the table, so that HAProxy can start with it while the database is unavailable. */
  #save(): void {
    clearTimeout(this.#saving);
    this.#saving = undefined;
    if (this.#saveCopy("routes", this.#table)) this.#saved = this.#table?.routes ?? [];
  }

  /** Saves a copy of the table; returns whether that worked. HAProxy has the table in any case, so a full disk is not an error. */
  #saveCopy(name: "routes" | "certificates", table: RouteTable | CertificateTable | undefined): boolean {
    try {
      replaceFile(join(this.#options.stateDir, `${name}.json`), JSON.stringify(table));
      this.#unsaved.delete(name);
      return true;
    } catch (error) {
      const message = `The edge's copy of the ${name} can't be written; a start without the database would bring back an older one.`;
      if (!this.#unsaved.has(name)) this.#options.log.error({ error: (error as Error).message }, message);
      this.#unsaved.add(name);
      return false;
    }
  }

  #runExclusive<T>(work: () => Promise<T>): Promise<T> {
    return this.#exclusive("", work);
  }
}
