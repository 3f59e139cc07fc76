import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import { BodyRelay } from "./body-relay.ts";
import type { FailureLog } from "./failure-log.ts";
import type { LiveRoute } from "./live-routes.ts";
import type { PageCode } from "../../ports/edge-pages.ts";
import { pageStatus, rawPage } from "./pages.ts";
import { rawHead, responseHead } from "./response-head.ts";
import type { ClientOutput } from "./slow-clients.ts";
import { UpstreamAttempts, type AttemptsUser } from "./upstream-attempts.ts";
import type { AnswerReceiver, UpstreamConnection } from "./upstream-connection.ts";

/** A request to upgrade (WebSocket or another protocol) and what its tunnel needs. */
export interface TunnelInput {
  readonly request: IncomingMessage;
  readonly socket: Socket;
  /** The bytes that the client sent after its head. */
  readonly early: Buffer;
  readonly route: LiveRoute;
  /** The header lines that the replica receives. */
  readonly fields: string;
  readonly path: string;
  readonly failures: FailureLog;
  readonly done: (tunnel: Tunnel) => void;
}

// How long one side of a tunnel may stay open after the other has ended.
const halfOpenMs = 30_000;

/** Asks a replica to upgrade and then passes bytes both ways until one side ends. Route changes do not affect it. */
export class Tunnel implements AttemptsUser, ClientOutput, AnswerReceiver {
  readonly isUpgrade = true;
  activeAtMs = performance.now();
  readonly attempts: UpstreamAttempts;
  readonly #input: TunnelInput;
  readonly #startedAtMs = this.activeAtMs;
  #connection: UpstreamConnection | undefined;
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
    // Always use a new connection: it ends with the tunnel, and the replica can't have closed it already.
    this.attempts.start(-1);
  }

  get waitingBytes(): number {
    return this.#input.socket.writableLength;
  }

  /** Only for a refused upgrade; an established tunnel buffers little and may be idle for long. */
  get blockedSinceMs(): number | undefined {
    return this.#refusal?.blockedSinceMs;
  }

  cut(): void {
    this.#input.socket.destroy();
  }

  /** Fails an upgrade without a response, or a refusal that stalls; an established tunnel has no timeout. */
  expire(): void {
    if (this.#established) return;
    if (!this.#answered) return this.#fail("app_timeout", "no answer in time");
    this.#input.socket.destroy();
  }

  connected(connection: UpstreamConnection): void {
    const { fields, path, request } = this.#input;
    this.#connection = connection;
    this.activeAtMs = performance.now();
    const [method, upgrade] = [request.method as string, request.headers.upgrade as string];
    connection.send({ method, path, fields, body: "none", upgrade }, this);
  }

  unreachable(reason: string): void {
    this.#fail("app_unreachable", reason);
  }

  upgraded(fields: string[], replica: Socket): void {
    const { socket: client, early, route, request } = this.#input;
    if (this.#finished) return void replica.destroy();
    this.#established = true;
    this.#count(101);
    const protocol = valueOf(fields, "upgrade") ?? (request.headers.upgrade as string);
    const head = responseHead(fields);
    client.write(rawHead(101, head, ["Connection", "Upgrade", "Upgrade", protocol]), "latin1");
    replica.on("data", (chunk: Buffer) => void (route.usage.bytesOut += chunk.length));
    client.on("data", (chunk: Buffer) => void (route.usage.bytesIn += chunk.length));
    if (early.length > 0) replica.write(early);
    replica.pipe(client);
    client.pipe(replica);
    tie(client, replica);
    replica.on("close", () => this.#finish());
  }

  /** Forwards a response that is not an upgrade; closing the connection marks its end. */
  answerBegan(status: number, fields: string[], reason: string): void {
    const { socket, route } = this.#input;
    this.#count(status);
    const head = responseHead(fields, reason);
    socket.write(rawHead(status, head, ["Connection", "close"]), "latin1");
    this.#refusal = new BodyRelay(this.#connection as UpstreamConnection, route.load);
    this.#refusal.sendTo(socket);
  }

  answerCame(chunk: Buffer): void {
    this.activeAtMs = performance.now();
    this.#input.route.usage.bytesOut += chunk.length;
    this.#refusal?.take(chunk);
  }

  answerEnded(): void {
    this.#input.socket.end(this.#refusal?.finish() ?? "");
    this.#finish();
  }

  answerFailed(error: Error): void {
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
    if (!this.#established) this.#connection?.close();
    this.attempts.leave();
    this.#input.done(this);
  }
}

function valueOf(fields: readonly string[], name: string): string | undefined {
  const at = fields.findIndex((field, i) => i % 2 === 0 && field.toLowerCase() === name);
  return at === -1 ? undefined : fields[at + 1];
}

/** Closes each side when the other ends. */
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
