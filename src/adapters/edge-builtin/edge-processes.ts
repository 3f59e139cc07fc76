import { closeSync, mkdirSync, openSync, readdirSync, readSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { awaitAnswer } from "../../kit/await-answer.ts";
import { run, startDetached } from "../../kit/exec.ts";
import type { Log } from "../../kit/log.ts";
import { identify, isAlive, sendSignal } from "../../kit/processes.ts";
import { until } from "../../kit/until.ts";
import { readJson, replaceFile } from "../../kit/whole-file.ts";
import { askEdgeStatus, callEdge } from "./call-edge.ts";
import { readRecord, type EdgeRecord } from "./edge-record.ts";
import { controlSocket, edgeCommand, edgeEnv, edgePaths, successorLines, type EdgeSettings } from "./edge-settings.ts";

const readyWithinMs = 30_000;
// sun_path in Linux's struct sockaddr_un holds 108 bytes including the terminating NUL (unix(7)).
const longestSocketPath = 107;

interface Programs {
  readonly node: string;
  readonly setpriv: string | null;
}

/** Starts and replaces the edge process and finds the running ones. */
export class EdgeProcesses {
  readonly #settings: EdgeSettings;
  readonly #programs: Programs;
  readonly #log: Log;

  constructor(settings: EdgeSettings, programs: Programs, log: Log) {
    this.#settings = settings;
    this.#programs = programs;
    this.#log = log;
  }

  /** Returns the record of the current process if that is alive. */
  current(): EdgeRecord | undefined {
    const record = readRecord(this.#settings.state_dir);
    return record !== undefined && isAlive(record.identity) ? record : undefined;
  }

  /**
   * Adopts the current process if it runs with these settings and this code; otherwise replaces it without losing a request, or starts one
   * if none is alive. Rejects with a message for the operator; a process that could not be replaced continues to serve.
   */
  async ensure(): Promise<EdgeRecord> {
    const running = this.current();
    if (running !== undefined && (await this.#ask(running).catch(() => undefined)) !== undefined) {
      return running.fingerprint === this.#settings.fingerprint ? running : this.#replace(running);
    }
    if (running !== undefined) await this.#kill(running);
    return this.#start();
  }

  /** Returns the control sockets of all live edge processes: the current one and those that are draining. */
  async sockets(): Promise<string[]> {
    const found: string[] = [];
    for (const name of this.#runFiles()) {
      if (!name.endsWith(".sock")) continue;
      const path = join(edgePaths(this.#settings.state_dir).run, name);
      if (identify(Number.parseInt(name, 10)) === undefined) rmSync(path, { force: true });
      else found.push(path);
    }
    return found;
  }

  /** Ends the current process if it hangs. */
  async endIfHung(): Promise<void> {
    const running = this.current();
    // A process that answers with an error does not hang; `ensure` handles it.
    if (running !== undefined && (await this.#ask(running).catch(() => true)) === undefined) await this.#kill(running);
  }

  /** Resolves with undefined when the process hangs; rejects when it answers with an error. */
  #ask({ identity }: EdgeRecord): Promise<unknown> {
    const socket = controlSocket(this.#settings.state_dir, identity.pid);
    return awaitAnswer((signal) => askEdgeStatus(socket, signal), {
      processes: () => [identity],
      continued: (pid) => this.#log.warn({ pid }, "A signal had stopped the edge process; Berth continues it."),
    });
  }

  async #kill({ identity }: EdgeRecord): Promise<void> {
    if (!isAlive(identity)) return;
    this.#log.error({ pid: identity.pid }, "The edge process does not answer; Berth ends it.");
    sendSignal(identity, "SIGKILL");
    await until(() => (isAlive(identity) ? undefined : true), { timeoutMs: 5000 });
  }

  async #start(predecessor?: number): Promise<EdgeRecord> {
    this.#prepare();
    const { state_dir } = this.#settings;
    const words = predecessor === undefined ? [] : [`${predecessor}`];
    const command = edgeCommand(this.#programs.node, state_dir, words);
    const [file, ...args] = [...(await this.#confinement()), command.file, ...command.args];
    const pid = await startDetached({ file: file as string, args }, edgePaths(state_dir).log, {
      env: edgeEnv(state_dir),
    });
    return this.#ready(pid);
  }

  /**
   * Returns the setpriv command that confines a process started by root, and its successors: it keeps only the capabilities to listen, to
   * change its user, and to open its program and folder below folders of other users, and it can't regain others.
   */
  async #confinement(): Promise<string[]> {
    const { setpriv } = this.#programs;
    if (setpriv === null || this.#settings.uid === null || process.getuid?.() !== 0) return [];
    // Two setpriv calls: a capability must be in the bounding set to become inheritable.
    const keep = [setpriv, "--inh-caps=-all,+net_bind_service,+setuid,+setgid,+dac_override", "--"];
    const words = [...keep, setpriv, "--no-new-privs", "--bounding-set=-all", "--"];
    const tried = await run({ file: setpriv, args: [...words.slice(1), "true"] }).catch(() => undefined);
    return tried?.exitCode === 0 ? words : [];
  }

  async #replace(old: EdgeRecord): Promise<EdgeRecord> {
    const { state_dir, listen_host, listen_port, listen_tls_port } = this.#settings;
    const samePort = old.listen_port === listen_port || (old.listen_tls_port ?? null) === (listen_tls_port ?? -1);
    const inherit = old.listen_host === listen_host && samePort;
    this.#log.info(
      { pid: old.identity.pid, inherit },
      "Berth replaces the edge process with one that has the current settings and code.",
    );
    if (!inherit) return this.#start(old.identity.pid);
    this.#prepare();
    const socket = controlSocket(state_dir, old.identity.pid);
    try {
      // Only edge processes of earlier versions read this.
      const hint = { node_bin: this.#programs.node, inherit: true };
      const started = await callEdge(socket, "POST", "/successor", hint);
      return await this.#ready((started as { pid: number }).pid);
    } catch (error) {
      if (error instanceof EdgeStartFailed) throw error;
      this.#log.warn(
        { error: String(error) },
        "The edge process cannot hand over its sockets; new connections wait for its successor.",
      );
      const limit = { limit_ms: this.#settings.drain_limit_ms, hurry: false };
      await callEdge(socket, "POST", "/drain", limit).catch(() => sendSignal(old.identity, "SIGTERM"));
      return this.#start();
    }
  }

  #prepare(): void {
    const { state_dir } = this.#settings;
    const paths = edgePaths(state_dir);
    if (Buffer.byteLength(controlSocket(state_dir, 4_194_304)) > longestSocketPath) {
      throw new EdgeStartFailed(
        `The data folder's path is too long for the edge's control socket: choose a shorter BERTH_DATA.`,
      );
    }
    mkdirSync(paths.run, { recursive: true, mode: 0o700 });
    replaceFile(paths.settings, JSON.stringify(this.#settings));
    replaceFile(paths.successor, successorLines(this.#programs.node, state_dir));
    for (const name of this.#runFiles()) if (name.endsWith(".failed")) rmSync(join(paths.run, name), { force: true });
  }

  async #ready(pid: number): Promise<EdgeRecord> {
    const identity = identify(pid);
    const outcome = await until(() => this.#outcome(pid, identity !== undefined && isAlive(identity)), {
      timeoutMs: readyWithinMs,
      atMostMs: 50,
    });
    if (typeof outcome === "object") {
      this.#log.info({ pid, port: outcome.port }, "The edge process is running.");
      return outcome;
    }
    if (identity !== undefined) sendSignal(identity, "SIGKILL");
    // Another control plane that uses the same folder may have started one first.
    const other = this.current();
    if (other?.fingerprint === this.#settings.fingerprint) return other;
    throw new EdgeStartFailed(outcome ?? `The edge process was not ready within ${readyWithinMs / 1000} s.`);
  }

  /** Returns the record once the process is ready, a message if it failed, undefined while neither is known. */
  #outcome(pid: number, alive: boolean): EdgeRecord | string | undefined {
    const record = readRecord(this.#settings.state_dir);
    if (record?.identity.pid === pid && isAlive(record.identity)) return record;
    return alive ? undefined : this.#whyFailed(pid);
  }

  #whyFailed(pid: number): string {
    const { listen_host, listen_port, listen_tls_port, state_dir } = this.#settings;
    const paths = edgePaths(state_dir);
    const failed = readJson<StartFailure>(join(paths.run, `${pid}.failed`));
    const isTls = failed?.port !== undefined && failed.port === listen_tls_port && failed.port !== listen_port;
    const setting = isTls ? "BERTH_EDGE_TLS_PORT" : "BERTH_EDGE_PORT";
    const where = `${listen_host}:${failed?.port ?? listen_port}`;
    switch (failed?.code) {
      case undefined:
        return `The edge process ended while starting. Its log ends with: ${tail(paths.log)}`;
      case "EADDRINUSE":
        return `Applications cannot be served: ${where} is in use by another program. End that program or set ${setting} to a free port.`;
      case "EACCES":
        return `Applications cannot be served: this user may not listen on ${where}. Set ${setting} to a port above 1023.`;
      case "EADDRNOTAVAIL":
        return `Applications cannot be served: this machine has no address ${listen_host}. Correct BERTH_LISTEN.`;
      default:
        return `The edge process could not start: ${failed?.message}`;
    }
  }

  #runFiles(): string[] {
    try {
      return readdirSync(edgePaths(this.#settings.state_dir).run);
    } catch {
      return [];
    }
  }
}

/** Thrown when no edge process could be started; the message is for the operator. */
class EdgeStartFailed extends Error {
  override name = "EdgeStartFailed";
}

interface StartFailure {
  readonly code: string;
  readonly message: string;
  readonly port?: number;
}

function tail(path: string): string {
  const file = openSync(path, "r");
  const buffer = Buffer.alloc(2000);
  const length = readSync(file, buffer, 0, buffer.length, Math.max(0, statSync(path).size - buffer.length));
  closeSync(file);
  return buffer.toString("utf8", 0, length).trim();
}
