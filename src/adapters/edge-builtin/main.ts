import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { flushCompileCache } from "node:module";
import { join } from "node:path";
import { startDetached } from "../../kit/exec.ts";
import { identify, type ProcessIdentity } from "../../kit/processes.ts";
import type { EdgeUsage, RouteTable } from "../../ports/edge.ts";
import { callEdge } from "./call-edge.ts";
import { listenControl } from "./listen-control.ts";
import { readRecord, writeRecord, writeWhole } from "./edge-record.ts";
import { EdgeServer } from "./edge-server.ts";
import { LiveRoutes } from "./live-routes.ts";
import { controlSocket, edgeCommand, edgeEnv, edgePaths, readSettings, type EdgeSettings } from "./edge-settings.ts";
import { UsageBook } from "./usage.ts";

// The edge process. Started as `main.ts <settings file> [<pid of the process it replaces> [inherit]]`; with `inherit`, descriptor 3 is the
// listening socket, shared with that process until it stops accepting, so that no connection is refused or lost between the two.

const inheritedFd = 3;
const stopGraceMs = 10_000;
const mostFaultsAMinute = 20;

async function main([settingsPath, predecessor, inherit]: string[]): Promise<void> {
  process.umask(0o077);
  const settings = readSettings(settingsPath as string);
  try {
    await new EdgeProcess(settings).run(
      predecessor === undefined ? undefined : Number(predecessor),
      inherit === "inherit",
    );
  } catch (error) {
    const { code = "", message } = error as NodeJS.ErrnoException;
    writeFileSync(join(edgePaths(settings.state_dir).run, `${process.pid}.failed`), JSON.stringify({ code, message }));
    process.exit(1);
  }
}

class EdgeProcess {
  readonly #settings: EdgeSettings;
  readonly #usage = new UsageBook();
  readonly #routes = new LiveRoutes(this.#usage);
  readonly #server: EdgeServer;
  readonly #startedAt = new Date().toISOString();
  #draining = false;

  constructor(settings: EdgeSettings) {
    this.#settings = settings;
    this.#server = new EdgeServer(this.#routes, settings);
  }

  async run(predecessor: number | undefined, inherit: boolean): Promise<void> {
    const { state_dir, listen_host, listen_port, fingerprint } = this.#settings;
    this.#loadRoutes();
    await listenControl(controlSocket(state_dir, process.pid), this.#calls());
    const port = await this.#server.listen(inherit ? inheritedFd : undefined);
    const identity = identify(process.pid) as ProcessIdentity;
    writeRecord(state_dir, { identity, fingerprint, listen_host, listen_port, port, started_at: this.#startedAt });
    process.on("SIGTERM", () => void this.#drain(stopGraceMs, true));
    process.on("SIGHUP", () => {});
    carryOnAfterFaults();
    flushCompileCache();
    if (predecessor !== undefined) await this.#relieve(predecessor);
  }

  #calls() {
    return {
      "PUT /routes": (body: unknown, text: string) => this.#apply(body as RouteTable, text),
      "PUT /version": (body: unknown) => {
        const { from, version } = body as { from: number; version: number };
        return { version: this.#routes.renew(from, version) };
      },
      "GET /status": () => ({
        version: this.#routes.version,
        connections: this.#server.connections,
        draining: this.#draining,
      }),
      "GET /open": () => this.#routes.open(),
      "GET /usage": () => this.#usage.show(),
      "POST /usage": (body: unknown) => this.#usage.keep(body as EdgeUsage[]),
      "POST /successor": (body: unknown) => this.#startSuccessor(body as { node_bin: string; inherit: boolean }),
      "POST /drain": (body: unknown) => {
        const { limit_ms, hurry } = body as { limit_ms: number; hurry: boolean };
        void this.#drain(limit_ms, hurry);
      },
    };
  }

  #apply(table: RouteTable, text: string): { version: number } {
    // Written before it is confirmed: what was confirmed is served again after a crash.
    if (this.#routes.apply(table) && !this.#draining) writeWhole(edgePaths(this.#settings.state_dir).routes, text);
    return { version: this.#routes.version };
  }

  #loadRoutes(): void {
    try {
      this.#routes.apply(JSON.parse(readFileSync(edgePaths(this.#settings.state_dir).routes, "utf8")) as RouteTable);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOENT")
        complain(`The saved routes are unreadable: ${String(error)}`);
    }
  }

  async #startSuccessor({ node_bin, inherit }: { node_bin: string; inherit: boolean }): Promise<{ pid: number }> {
    const stateDir = this.#settings.state_dir;
    const words = [`${process.pid}`, ...(inherit ? ["inherit"] : [])];
    const fds = inherit ? [this.#server.listeningFd] : [];
    const options = { fds, env: edgeEnv(stateDir) };
    return { pid: await startDetached(edgeCommand(node_bin, stateDir, words), edgePaths(stateDir).log, options) };
  }

  async #relieve(predecessor: number): Promise<void> {
    const limit = { limit_ms: this.#settings.drain_limit_ms, hurry: false };
    await callEdge(controlSocket(this.#settings.state_dir, predecessor), "POST", "/drain", limit).catch(
      (error: Error) => {
        complain(`The edge process that was replaced does not answer: ${error.message}`);
      },
    );
  }

  async #drain(limitMs: number, hurry: boolean): Promise<void> {
    // May be called again with a shorter limit: a stop while a replaced process drains for long.
    this.#draining = true;
    await this.#server.drain(limitMs, hurry);
    await this.#handCounts();
    rmSync(controlSocket(this.#settings.state_dir, process.pid), { force: true });
    process.exit(0);
  }

  /** Leaves what was counted with the process that took over; until now this one could be asked itself. */
  async #handCounts(): Promise<void> {
    const successor = readRecord(this.#settings.state_dir)?.identity.pid;
    if (successor === undefined || successor === process.pid) return;
    const counts = this.#usage.show();
    if (counts.length === 0) return;
    await callEdge(controlSocket(this.#settings.state_dir, successor), "POST", "/usage", counts).catch((error: Error) =>
      complain(`The last counts could not be handed over: ${error.message}`),
    );
  }
}

/** A fault in one request must not cut everybody else's; many of them mean that the process itself is sick. */
function carryOnAfterFaults(): void {
  let faults = 0;
  setInterval(() => (faults = 0), 60_000).unref();
  process.on("uncaughtException", (error) => {
    faults += 1;
    complain(error.stack ?? error.message);
    if (faults > mostFaultsAMinute) process.exit(70);
  });
}

/** To the log: stderr is appended to it. */
function complain(text: string): void {
  process.stderr.write(`${new Date().toISOString()} ${text}\n`);
}

await main(process.argv.slice(2));
