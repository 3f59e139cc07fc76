import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import { pageStatus, rawPage, type PageCode } from "./pages.ts";
import type { ResponseHead } from "./response-reader.ts";
import type { LiveRoute } from "./live-routes.ts";
import { pickTarget, type EdgeTarget } from "./target.ts";
import type { ConnectionUser, UpstreamConnection } from "./upstream-connection.ts";

/** A request to upgrade (WebSocket or another protocol) and what its tunnel needs. */
export interface TunnelInput {
  readonly request: IncomingMessage;
  readonly socket: Socket;
  /** What the client sent behind its head. */
  readonly early: Buffer;
  readonly route: LiveRoute;
  readonly head: string;
  readonly done: (tunnel: Tunnel) => void;
}

const mostAttempts = 4;
// How long the other half of a tunnel may stay open after one side has ended.
const halfOpenMs = 30_000;

/** Asks a replica to upgrade and then passes bytes both ways until one side ends. Route changes don't touch it. */
export class Tunnel implements ConnectionUser {
  activeAtMs = performance.now();
  connecting = true;
  readonly #input: TunnelInput;
  readonly #startedAtMs = this.activeAtMs;
  readonly #tried: EdgeTarget[] = [];
  #target: EdgeTarget | undefined;
  #connection: UpstreamConnection | undefined;
  #answered = false;
  #finished = false;

  constructor(input: TunnelInput) {
    this.#input = input;
  }

  start(): void {
    const { socket } = this.#input;
    socket.on("error", () => socket.destroy());
    socket.on("close", () => this.#clientClosed());
    if (!this.#attempt()) this.#fail("app_unreachable");
  }

  /** Ends an upgrade that gets no answer; an established tunnel has no time limit. */
  expire(): void {
    if (this.#answered) return;
    this.#connection?.destroy();
    if (this.connecting) this.connectFailed();
    else this.#fail("app_timeout");
  }

  connected(connection: UpstreamConnection): void {
    this.connecting = false;
    this.#connection = connection;
    connection.send("GET", this.#input.head, false);
  }

  connectFailed(): void {
    if (this.#finished) return;
    this.#target?.refused();
    if (this.#target !== undefined) this.#tried.push(this.#target);
    this.#leave();
    if (this.#tried.length >= mostAttempts || !this.#attempt()) this.#fail("app_unreachable");
  }

  information(): void {}

  head(head: ResponseHead): void {
    const { socket, route } = this.#input;
    this.#answered = true;
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
    this.#input.route.usage.bytesOut += chunk.length;
    if (this.#input.socket.write(chunk)) return;
    this.#connection?.pause();
    this.#input.socket.once("drain", () => this.#finished || this.#connection?.resume());
  }

  end(): void {
    this.#input.socket.end();
    this.#finish();
  }

  broken(): void {
    if (this.#answered) this.#input.socket.destroy();
    else this.#fail("app_bad_response");
    this.#finish();
  }

  drained(): void {}

  #attempt(): boolean {
    const { route } = this.#input;
    const target = pickTarget(route.targets, route.turn++, this.#tried);
    if (target === undefined) return false;
    this.#target = target;
    target.open += 1;
    this.connecting = true;
    this.activeAtMs = performance.now();
    // Always a new connection: it ends with the tunnel and can't be a stale one.
    this.#connection = target.acquire(this, -1);
    return true;
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

  #fail(code: PageCode): void {
    const { request, socket, route } = this.#input;
    this.#answered = true;
    this.#connection?.destroy();
    route.usage.count(pageStatus(code), performance.now() - this.#startedAtMs);
    socket.end(rawPage(code, request.headers.accept));
    this.#finish();
  }

  #leave(): void {
    if (this.#target !== undefined) this.#target.open -= 1;
    this.#target = undefined;
  }

  #finish(): void {
    if (this.#finished) return;
    this.#finished = true;
    this.#leave();
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
