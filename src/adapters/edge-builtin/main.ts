import { closeSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { flushCompileCache } from "node:module";
import type { Socket } from "node:net";
import { join } from "node:path";
import { identify, type ProcessIdentity } from "../../kit/processes.ts";
import type { CertificateTable, EdgeUsage, RouteTable } from "../../ports/edge.ts";
import { awaitLastUsage, callEdge, connectEdge } from "./call-edge.ts";
import { writeLog } from "./write-log.ts";
import { dropPrivileges } from "./drop-privileges.ts";
import { listenControl, type ControlServer } from "./listen-control.ts";
import { readRecord, writeRecord } from "./edge-record.ts";
import { EdgeServer, type EdgePorts, type InheritedSockets } from "./edge-server.ts";
import { LiveCertificates } from "./live-certificates.ts";
import type { RouteChanges } from "./route-changes.ts";
import { LiveRoutes } from "./live-routes.ts";
import { controlSocket, edgePaths, readSettings, type EdgeSettings } from "./edge-settings.ts";
import { SuccessorStarter } from "./successor-starter.ts";
import { UsageBook } from "./usage.ts";

// The edge process. Started as `main.ts <settings file> [<pid of the process it replaces> [inherit]]`. With `inherit`, descriptor 3 is the
// predecessor's listening socket and descriptor 4 its TLS one, if any; both processes share them until the predecessor stops accepting, so
// that no connection is refused or lost. If started by root, the process becomes an ordinary user before it reads the first client: by then
// it has opened what it needs and can't access its folder.

const inheritedFds = { plain: 3, tls: 4 };
const stopGraceMs = 10_000;
const maxFaultLinesAMinute = 20;

async function main([settingsPath, predecessor, inherit]: string[]): Promise<void> {
  process.umask(0o077);
  const settings = readSettings(settingsPath as string);
  try {
    await new EdgeProcess(settings).run(
      predecessor === undefined ? undefined : Number(predecessor),
      inherit === "inherit",
    );
  } catch (error) {
    const { code = "", message, port } = error as NodeJS.ErrnoException & { port?: number };
    const failure = JSON.stringify({ code, message, port });
    writeFileSync(join(edgePaths(settings.state_dir).run, `${process.pid}.failed`), failure);
    process.exit(1);
  }
}

class EdgeProcess {
  readonly #settings: EdgeSettings;
  readonly #usage = new UsageBook();
  readonly #routes = new LiveRoutes(this.#usage);
  readonly #certificates = new LiveCertificates();
  readonly #server: EdgeServer;
  readonly #startedAt = new Date().toISOString();
  readonly #lastUsage = Promise.withResolvers<readonly EdgeUsage[]>();
  #control: ControlServer | undefined;
  #successors: SuccessorStarter | undefined;
  #draining = false;

  constructor(settings: EdgeSettings) {
    this.#settings = settings;
    this.#server = new EdgeServer(this.#routes, this.#certificates, settings);
  }

  async run(predecessor: number | undefined, inherit: boolean): Promise<void> {
    const { state_dir } = this.#settings;
    this.#loadSaved();
    const others = await this.#connectToOthers();
    this.#control = await listenControl(controlSocket(state_dir, process.pid), this.#calls());
    const leaving = predecessor === undefined ? undefined : await this.#connect(predecessor);
    const ports = await this.#server.listen(inherit ? inheritedSockets(this.#settings) : {});
    this.#settle(ports);
    for (const other of others) void this.#inheritCounts(other);
    if (leaving !== undefined) await this.#takeOverFrom(leaving);
  }

  /** Must stay synchronous: no client may be read before the privileges are dropped. */
  #settle(ports: EdgePorts): void {
    const { state_dir, listen_host, listen_port, listen_tls_port, fingerprint, uid } = this.#settings;
    const identity = identify(process.pid) as ProcessIdentity;
    this.#successors = new SuccessorStarter(state_dir, this.#server.listeningFds);
    process.on("SIGTERM", () => void this.#drain(stopGraceMs, true));
    process.on("SIGHUP", () => {});
    carryOnAfterFaults();
    flushCompileCache();
    const listens = { listen_host, listen_port, listen_tls_port, ...ports };
    writeRecord(state_dir, { identity, fingerprint, ...listens, started_at: this.#startedAt });
    if (!dropPrivileges(uid)) writeLog(`This machine lets no process become user ${uid}, so the edge runs as root.`);
  }

  #calls() {
    return {
      "PUT /routes": (body: unknown) => {
        this.#routes.apply(body as RouteTable);
        return { version: this.#routes.version };
      },
      "PUT /changes": (body: unknown) => ({ version: this.#routes.change(body as RouteChanges) }),
      "PUT /certificates": (body: unknown) => ({ version: this.#certificates.apply(body as CertificateTable) }),
      "GET /status": () => ({
        version: this.#routes.version,
        certificate_version: this.#certificates.version,
        connections: this.#server.connections,
        draining: this.#draining,
      }),
      "GET /open": () => this.#routes.open(),
      "GET /usage": () => this.#usage.show(),
      "GET /last-usage": () => this.#lastUsage.promise,
      // An edge process of an earlier version sends its final counts this way.
      "POST /usage": (body: unknown) => this.#usage.keep(body as EdgeUsage[]),
      "POST /successor": async () => ({ pid: await this.#successors?.start() }),
      "POST /drain": (body: unknown) => {
        const { limit_ms, hurry } = body as { limit_ms: number; hurry: boolean };
        void this.#drain(limit_ms, hurry);
      },
    };
  }

  /** Loads the saved tables while this process can still access its files. */
  #loadSaved(): void {
    const { routes, certificates } = edgePaths(this.#settings.state_dir);
    load<RouteTable>(routes, (table) => this.#routes.apply(table));
    load<CertificateTable>(certificates, (table) => this.#certificates.apply(table));
  }

  /** Connects to all draining processes, the predecessor included. */
  async #connectToOthers(): Promise<Socket[]> {
    const names = readdirSync(edgePaths(this.#settings.state_dir).run).filter((name) => name.endsWith(".sock"));
    const met = await Promise.all(names.map((name) => this.#connect(Number.parseInt(name, 10))));
    return met.filter((socket) => socket !== undefined);
  }

  #connect(pid: number): Promise<Socket | undefined> {
    return connectEdge(controlSocket(this.#settings.state_dir, pid)).catch(() => undefined);
  }

  async #inheritCounts(from: Socket): Promise<void> {
    const counts = await awaitLastUsage(from).catch(() => []);
    this.#usage.keep(counts as EdgeUsage[]);
  }

  async #takeOverFrom(predecessor: Socket): Promise<void> {
    const limit = { limit_ms: this.#settings.drain_limit_ms, hurry: false };
    await callEdge(predecessor, "POST", "/drain", limit).catch((error: Error) => {
      writeLog(`The edge process that was replaced does not answer: ${error.message}`);
    });
  }

  async #drain(limitMs: number, hurry: boolean): Promise<void> {
    // May be called again with a shorter limit, when a replaced process that drains for long is stopped.
    this.#draining = true;
    const freed = this.#successors?.end();
    await this.#server.drain(limitMs, hurry);
    // The successor adds these final counts to its own; until now the control plane read them from this process.
    this.#lastUsage.resolve(this.#usage.show());
    await Promise.all([freed, this.#control?.settled()]);
    this.#removeSocket();
    process.exit(0);
  }

  /** Removes the control socket. An ordinary user may not do that; the control plane then does. */
  #removeSocket(): void {
    try {
      rmSync(controlSocket(this.#settings.state_dir, process.pid), { force: true });
    } catch {
      // The folder belongs to root.
    }
  }
}

function load<T>(path: string, apply: (table: T) => unknown): void {
  try {
    apply(JSON.parse(readFileSync(path, "utf8")) as T);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") writeLog(`${path} is unreadable: ${String(error)}`);
  }
}

/** Returns those of the predecessor's listening sockets whose address this process needs, and closes the others. */
function inheritedSockets({ state_dir, listen_host, listen_port, listen_tls_port }: EdgeSettings): InheritedSockets {
  const { plain, tls } = inheritedFds;
  const from = readRecord(state_dir);
  const hasTls = (from?.listen_tls_port ?? null) !== null;
  const isHost = from?.listen_host === listen_host;
  const [isPlain, isTls] = [
    isHost && from.listen_port === listen_port,
    isHost && hasTls && from.listen_tls_port === listen_tls_port,
  ];
  if (!isPlain) closeSync(plain);
  if (hasTls && !isTls) closeSync(tls);
  return { fd: isPlain ? plain : undefined, tlsFd: isTls ? tls : undefined };
}

/** An error in one request must not abort the others: it is logged, and that request ends by its timeout. */
function carryOnAfterFaults(): void {
  let faults = 0;
  setInterval(() => (faults = 0), 60_000).unref();
  process.on("uncaughtException", (error) => {
    faults += 1;
    if (faults <= maxFaultLinesAMinute) writeLog(error.stack ?? error.message);
  });
}

await main(process.argv.slice(2));
