import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { Dispatcher } from "undici";
import { BodyRelay } from "./body-relay.ts";
import type { FailureLog } from "./failure-log.ts";
import type { LiveRoute } from "./live-routes.ts";
import type { PageCode } from "../../ports/edge-pages.ts";
import { pageStatus, rawPage } from "./pages.ts";
import { hasTooManyFields, rawHead, responseHead } from "./response-head.ts";
import type { ClientOutput } from "./slow-clients.ts";
import { UpstreamAttempts, type AttemptsUser } from "./upstream-attempts.ts";
import type { UpstreamConnection, UpstreamSocket } from "./upstream-connection.ts";

/** A request to upgrade (WebSocket or another protocol) and what its tunnel needs. */
export interface TunnelInput {
  readonly request: IncomingMessage;
  readonly socket: Socket;
  /** What the client sent behind its head. */
  readonly early: Buffer;
  readonly route: LiveRoute;
  readonly headers: string[];
  readonly path: string;
  readonly failures: FailureLog;
  readonly done: (tunnel: Tunnel) => void;
}

type Controller = Dispatcher.DispatchController;

// How long the other half of a tunnel may stay open after one side has ended.
const halfOpenMs = 30_000;

/** Asks a replica to upgrade and then passes bytes both ways until one side ends. Route changes don't touch it. */
export class Tunnel implements AttemptsUser, ClientOutput, Dispatcher.DispatchHandler {
  activeAtMs = performance.now();
  readonly attempts: UpstreamAttempts;
  readonly #input: TunnelInput;
  readonly #startedAtMs = this.activeAtMs;
  #replica: UpstreamSocket | undefined;
  #refusal: BodyRelay | undefined;
  #answered = false;
  #established = false;
  #finished = false;

  constructor(input: TunnelInput) {
    this.#input = input;
    this.attempts = new UpstreamAttempts(input.route, this);
  }

  start(): void {
    const { socket } = this.#input;
    socket.on("error", () => socket.destroy());
    socket.on("close", () => this.#clientClosed());
    // Always a new connection: it ends with the tunnel, and the replica can't just have closed it.
    this.attempts.start(-1);
  }

  get waitingBytes(): number {
    return this.#input.socket.writableLength;
  }

  /** Of a refused upgrade; an established tunnel holds little and may rest for long. */
  get blockedSinceMs(): number | undefined {
    return this.#refusal?.blockedSinceMs;
  }

  cut(): void {
    this.#input.socket.destroy();
  }

  /** Ends an upgrade that gets no answer, or a refusal that stops in its middle; an established tunnel has no time limit. */
  expire(): void {
    if (this.#established) return;
    if (!this.#answered) return this.#fail("app_timeout", "no answer in time");
    this.#input.socket.destroy();
  }

  connected(connection: UpstreamConnection): void {
    const { headers, path, request } = this.#input;
    this.#replica = connection.socket;
    this.#replica.beginHead();
    this.activeAtMs = performance.now();
    const method = request.method as Dispatcher.HttpMethod;
    connection.client.dispatch({ method, path, headers, upgrade: request.headers.upgrade as string }, this);
  }

  unreachable(reason: string): void {
    this.#fail("app_unreachable", reason);
  }

  onRequestStart(): void {}

  onRequestUpgrade(controller: Controller, status: number, headers: IncomingHttpHeaders, replica: Duplex): void {
    const { socket: client, early, route, request } = this.#input;
    if (this.#finished) return void replica.destroy();
    this.#replica?.endHead();
    const fields = controller.rawHeaders as Buffer[];
    if (hasTooManyFields(fields)) return this.#fail("app_bad_response", "too many fields");
    this.#established = true;
    this.#count(status);
    const protocol = String(headers.upgrade ?? request.headers.upgrade);
    const head = responseHead(fields);
    client.write(rawHead(status, head, ["Connection", "Upgrade", "Upgrade", protocol]), "latin1");
    replica.on("data", (chunk: Buffer) => void (route.usage.bytesOut += chunk.length));
    client.on("data", (chunk: Buffer) => void (route.usage.bytesIn += chunk.length));
    if (early.length > 0) replica.write(early);
    replica.pipe(client);
    client.pipe(replica);
    tie(client, replica as Socket);
    replica.on("close", () => this.#finish());
  }

  /** Begins to pass on an answer that is no upgrade; the end of the connection marks its end. */
  onResponseStart(controller: Controller, status: number, _headers: unknown, reason?: string): void {
    const { socket, route } = this.#input;
    this.activeAtMs = performance.now();
    if (status < 200 || this.#finished) return;
    this.#replica?.endHead();
    const fields = controller.rawHeaders as Buffer[];
    if (hasTooManyFields(fields)) return this.#fail("app_bad_response", "too many fields");
    this.#count(status);
    const head = responseHead(fields, reason);
    socket.write(rawHead(status, head, ["Connection", "close"]), "latin1");
    this.#refusal = new BodyRelay(controller, route.load);
    this.#refusal.sendTo(socket);
  }

  onResponseData(_controller: Controller, chunk: Buffer): void {
    this.activeAtMs = performance.now();
    this.#input.route.usage.bytesOut += chunk.length;
    this.#refusal?.take(chunk);
  }

  onResponseEnd(): void {
    this.#input.socket.end(this.#refusal?.finish() ?? "");
    this.#finish();
  }

  onResponseError(_controller: Controller, error: Error): void {
    if (this.#answered) this.#input.socket.destroy();
    else this.#fail("app_bad_response", error.message);
  }

  #clientClosed(): void {
    if (this.#finished) return;
    if (!this.#answered) this.#count(499);
    this.#finish();
  }

  #fail(code: PageCode, reason: string): void {
    const { request, socket, route, failures } = this.#input;
    if (this.#finished) return;
    failures.note(route.usage.projectId, code, reason);
    this.#count(pageStatus(code));
    socket.end(rawPage(code, request.headers.accept));
    this.#finish();
  }

  #count(status: number): void {
    this.#answered = true;
    this.activeAtMs = performance.now();
    this.#input.route.usage.count(status, this.activeAtMs - this.#startedAtMs);
  }

  #finish(): void {
    if (this.#finished) return;
    this.#finished = true;
    if (!this.#established) this.#replica?.destroy();
    this.attempts.leave();
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
    if (one.destroyed) other.destroy();
  }
}
