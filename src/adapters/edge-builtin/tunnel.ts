import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import { Attempts } from "./attempts.ts";
import type { FailureLog } from "./failure-log.ts";
import { pageStatus, rawPage, type PageCode } from "./pages.ts";
import type { ResponseHead } from "./response-reader.ts";
import type { LiveRoute } from "./live-routes.ts";
import type { ConnectionUser, UpstreamConnection } from "./upstream-connection.ts";

/** A request to upgrade (WebSocket or another protocol) and what its tunnel needs. */
export interface TunnelInput {
  readonly request: IncomingMessage;
  readonly socket: Socket;
  /** What the client sent behind its head. */
  readonly early: Buffer;
  readonly route: LiveRoute;
  readonly head: string;
  readonly failures: FailureLog;
  readonly done: (tunnel: Tunnel) => void;
}

// How long the other half of a tunnel may stay open after one side has ended.
const halfOpenMs = 30_000;

/** Asks a replica to upgrade and then passes bytes both ways until one side ends. Route changes don't touch it. */
export class Tunnel implements ConnectionUser {
  activeAtMs = performance.now();
  connecting = true;
  readonly #input: TunnelInput;
  readonly #startedAtMs = this.activeAtMs;
  readonly #attempts: Attempts;
  #connection: UpstreamConnection | undefined;
  #answered = false;
  #established = false;
  #finished = false;

  constructor(input: TunnelInput) {
    this.#input = input;
    this.#attempts = new Attempts(input.route);
  }

  start(): void {
    const { socket } = this.#input;
    socket.on("error", () => socket.destroy());
    socket.on("close", () => this.#clientClosed());
    this.#attempt("no replica");
  }

  /** Ends an upgrade that gets no answer, or a refusal that stops in its middle; an established tunnel has no time limit. */
  expire(): void {
    if (this.#established) return;
    this.#connection?.destroy();
    if (this.connecting) this.connectFailed("no connection in time");
    else if (this.#answered) this.broken("stopped in the middle of its answer");
    else this.#fail("app_timeout", "no answer in time");
  }

  connected(connection: UpstreamConnection): void {
    this.connecting = false;
    this.#connection = connection;
    connection.send("GET", this.#input.head, false);
  }

  connectFailed(reason: string): void {
    if (this.#finished) return;
    const where = this.#attempts.target?.key;
    this.#attempts.refused();
    this.#attempt(`${where}: ${reason}`);
  }

  information(): void {
    this.activeAtMs = performance.now();
  }

  head(head: ResponseHead): void {
    const { socket, route } = this.#input;
    this.#answered = true;
    this.#established = head.status === 101;
    this.activeAtMs = performance.now();
    route.usage.count(head.status, performance.now() - this.#startedAtMs);
    const lines = Array.from(
      { length: head.headers.length / 2 },
      (_, i) => `${head.headers[2 * i]}: ${head.headers[2 * i + 1]}\r\n`,
    );
    const connection =
      head.status === 101 ? `Connection: Upgrade\r\nUpgrade: ${head.upgrade}\r\n` : "Connection: close\r\n";
    socket.write(`HTTP/1.1 ${head.status} ${head.reason}\r\n${lines.join("")}${connection}\r\n`, "latin1");
    if (head.status === 101) setImmediate(() => this.#join());
  }

  body(chunk: Buffer): void {
    this.activeAtMs = performance.now();
    this.#input.route.usage.bytesOut += chunk.length;
    if (this.#input.socket.write(chunk)) return;
    this.#connection?.pause();
    this.#input.socket.once("drain", () => this.#finished || this.#connection?.resume());
  }

  end(): void {
    this.#input.socket.end();
    this.#finish();
  }

  broken(reason: string): void {
    if (this.#answered) this.#input.socket.destroy();
    else this.#fail("app_bad_response", reason);
    this.#finish();
  }

  drained(): void {}

  /** Goes to another replica, or fails for this reason when there is none. */
  #attempt(reason: string): void {
    const target = this.#attempts.next();
    if (target === undefined) return this.#fail("app_unreachable", reason);
    this.connecting = true;
    this.activeAtMs = performance.now();
    // Always a new connection: it ends with the tunnel and can't be a stale one.
    this.#connection = target.acquire(this, -1);
  }

  #join(): void {
    const connection = this.#connection;
    const { socket: client, early, route } = this.#input;
    if (this.#finished || connection === undefined) return;
    const { socket: replica, rest } = connection.detach();
    this.#connection = undefined;
    const usage = route.usage;
    replica.on("data", (chunk: Buffer) => void (usage.bytesOut += chunk.length));
    client.on("data", (chunk: Buffer) => void (usage.bytesIn += chunk.length));
    if (rest.length > 0) client.write(rest);
    if (early.length > 0) replica.write(early);
    replica.pipe(client);
    client.pipe(replica);
    tie(client, replica);
    replica.on("close", () => this.#finish());
    if (replica.destroyed || client.destroyed) this.#cut(client, replica);
  }

  #cut(client: Socket, replica: Socket): void {
    client.destroy();
    replica.destroy();
    this.#finish();
  }

  #clientClosed(): void {
    if (this.#finished) return;
    if (!this.#answered) this.#input.route.usage.count(499, performance.now() - this.#startedAtMs);
    this.#connection?.destroy();
    this.#finish();
  }

  #fail(code: PageCode, reason: string): void {
    const { request, socket, route, failures } = this.#input;
    failures.note(route.usage.projectId, code, reason);
    this.#answered = true;
    this.#connection?.destroy();
    route.usage.count(pageStatus(code), performance.now() - this.#startedAtMs);
    socket.end(rawPage(code, request.headers.accept));
    this.#finish();
  }

  #finish(): void {
    if (this.#finished) return;
    this.#finished = true;
    this.#attempts.leave();
    this.#input.done(this);
  }
}

/** The end of one side ends the other. */
function tie(client: Socket, replica: Socket): void {
  for (const [one, other] of [
    [client, replica],
    [replica, client],
  ] as const) {
    one.on("error", () => other.destroy());
    one.on("close", () => other.destroySoon());
    one.on("end", () => other.setTimeout(halfOpenMs, () => other.destroy()));
  }
}
