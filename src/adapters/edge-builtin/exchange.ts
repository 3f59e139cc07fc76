import type { IncomingMessage, ServerResponse } from "node:http";
import { BodyRelay, soon } from "./body-relay.ts";
import type { FailureLog } from "./failure-log.ts";
import type { LiveRoute } from "./live-routes.ts";
import type { PageCode } from "../../ports/edge-pages.ts";
import { sendPage } from "./pages.ts";
import { hasBody, hasLength } from "./request-head.ts";
import { responseHead, responseTrailers } from "./response-head.ts";
import type { ClientOutput } from "./slow-clients.ts";
import { UpstreamAttempts, type AttemptsUser } from "./upstream-attempts.ts";
import type { AnswerReceiver, UpstreamConnection } from "./upstream-connection.ts";

/** One client request and what it takes to answer it. */
export interface ExchangeInput {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly route: LiveRoute;
  /** The header lines that the replica receives. */
  readonly fields: string;
  readonly path: string;
  /** The client waits for `100 Continue` before it sends the body. */
  readonly expectsContinue: boolean;
  readonly maxBodyBytes: number;
  readonly failures: FailureLog;
  /** Called once, at the very end. */
  readonly done: (exchange: Exchange) => void;
}

// RFC 9110 §9.2.2: the methods that may be repeated when a connection closes before the response.
const repeatable = new Set(["GET", "HEAD", "OPTIONS", "PUT", "DELETE"]);
// Copying longer bodies costs more than it saves.
const maxJoinedBytes = 8 * 1024;
// A request that can't be repeated uses only a connection that was in use just before: a replica is unlikely to close that one.
const freshEnoughMs = 500;

/** Gets one response from one of a route's replicas. */
export class Exchange implements AttemptsUser, ClientOutput, AnswerReceiver {
  readonly isUpgrade = false;
  /** The time when a byte last moved in either direction. */
  activeAtMs = performance.now();
  readonly attempts: UpstreamAttempts;
  readonly #input: ExchangeInput;
  readonly #startedAtMs = this.activeAtMs;
  readonly #upload: Upload | undefined;
  #download: BodyRelay | undefined;
  #connection: UpstreamConnection | undefined;
  #uploadedBytes = 0;
  #wasSent = false;
  #isRepeated = false;
  #finished = false;

  constructor(input: ExchangeInput) {
    this.#input = input;
    this.attempts = new UpstreamAttempts(input.route, this);
    if (hasBody(input.request)) this.#upload = new Upload(input, (bytes) => this.#uploaded(bytes));
  }

  start(): void {
    // Handles a client that disconnects; after a finished response it has no effect.
    this.#input.response.on("close", () => this.#clientClosed());
    this.attempts.start(this.#isRepeatable() ? Number.POSITIVE_INFINITY : freshEnoughMs);
  }

  get waitingBytes(): number {
    return this.#input.response.writableLength;
  }

  get blockedSinceMs(): number | undefined {
    return this.#download?.blockedSinceMs;
  }

  cut(): void {
    this.#input.response.destroy();
  }

  /** Fails an exchange in which nothing has moved for too long. */
  expire(): void {
    const { request, response } = this.#input;
    if (!response.headersSent && this.#upload !== undefined && !request.complete) this.#fail("request_timeout");
    else this.#fail("app_timeout", response.headersSent ? "stopped in the middle of its answer" : "no answer in time");
  }

  connected(connection: UpstreamConnection): void {
    this.activeAtMs = performance.now();
    this.#connection = connection;
    // The replica may already have closed the connection; wait a turn, so that a pending close is read first.
    if (connection.reused && !this.#isRepeatable()) setImmediate(() => this.#send(connection));
    else this.#send(connection);
  }

  unreachable(reason: string): void {
    this.#fail("app_unreachable", reason);
  }

  answerBegan(status: number, fields: string[], reason: string): void {
    this.activeAtMs = performance.now();
    const { request, response, route } = this.#input;
    const takesChunks = request.httpVersionMinor === 1 && request.method !== "HEAD" && status !== 204 && status !== 304;
    const head = responseHead(fields, reason, takesChunks);
    try {
      response.writeHead(status, head.reason, head.headers);
    } catch (error) {
      // Node rejects the status or a header field.
      return this.#fail("app_bad_response", (error as Error).message);
    }
    route.usage.count(status, this.activeAtMs - this.#startedAtMs);
    this.#download = new BodyRelay(this.#connection as UpstreamConnection, route.load);
    this.#download.sendTo(response);
    // If no body byte arrives in this turn, send the head alone, as for an event stream without events yet.
    soon(() => void (this.#download?.isUnread === true && !this.#finished && response.flushHeaders()));
  }

  answerCame(chunk: Buffer): void {
    this.activeAtMs = performance.now();
    this.#input.route.usage.bytesOut += chunk.length;
    this.#download?.take(chunk);
  }

  answerEnded(trailers: string[]): void {
    const { response } = this.#input;
    const [target, connection] = [this.attempts.target, this.#connection];
    if (trailers.length > 0) response.addTrailers(responseTrailers(trailers));
    endWith(response, this.#download?.finish());
    this.#finish();
    // In a microtask, because the connection closes itself after this call if it can't be kept, as after garbage or half a request.
    soon(() => void (connection?.socket.destroyed === false && target?.keep(connection)));
  }

  answerFailed(error: Error): void {
    const connection = this.#connection;
    const mayRepeat = connection?.isUnanswered === true && this.#isRepeatable();
    // A kept connection may be closed at any time, which says nothing about the replica; a new one should have been answered.
    if (mayRepeat && connection.reused) return this.#connectAgain();
    if (!mayRepeat || !this.#tryAnother()) this.#fail("app_bad_response", error.message);
  }

  /** Repeats the request once, on another replica. */
  #tryAnother(): boolean {
    if (this.#isRepeated) return false;
    this.#isRepeated = true;
    this.#connection = undefined;
    return this.attempts.tryAnother();
  }

  #send(connection: UpstreamConnection): void {
    if (this.#finished) return;
    if (connection.socket.destroyed) return this.#connectAgain();
    const { request, response, fields, path, expectsContinue } = this.#input;
    const body = this.#upload === undefined ? "none" : hasLength(request) ? "sized" : "chunked";
    this.#wasSent = true;
    connection.send({ method: request.method as string, path, fields, body }, this);
    if (this.#upload === undefined) return;
    if (expectsContinue) response.writeContinue();
    this.#upload.sendTo(connection);
  }

  #connectAgain(): void {
    this.#connection = undefined;
    this.#wasSent = false;
    this.attempts.connectAgain();
  }

  #uploaded(bytes: number): void {
    this.activeAtMs = performance.now();
    this.#input.route.usage.bytesIn += bytes;
    this.#uploadedBytes += bytes;
    if (this.#uploadedBytes > this.#input.maxBodyBytes) this.#fail("body_too_large");
  }

  #isRepeatable(): boolean {
    return this.#upload === undefined && repeatable.has(this.#input.request.method as string);
  }

  #clientClosed(): void {
    if (this.#finished) return;
    const { response, route } = this.#input;
    // Status 499, as in nginx: the client left before the response.
    if (!response.headersSent) route.usage.count(499, performance.now() - this.#startedAtMs);
    this.#finish();
    this.#connection?.close();
  }

  #fail(code: PageCode, reason?: string): void {
    const { request, response, route, failures, expectsContinue } = this.#input;
    if (this.#finished) return;
    if (reason !== undefined) failures.note(route.usage.projectId, code, reason);
    this.#finish();
    this.#connection?.close();
    if (response.headersSent) return void response.destroy();
    // A client that waits for `100 Continue` may send its body or omit it, and we could not distinguish it from the next request.
    if (expectsContinue && !this.#wasSent) response.shouldKeepAlive = false;
    route.usage.count(sendPage(request, response, code), performance.now() - this.#startedAtMs);
  }

  #finish(): void {
    this.#finished = true;
    this.#upload?.relay.stop();
    this.attempts.leave();
    this.#input.done(this);
  }
}

/**
 * Ends the response with a string: Node sends a head and a string in one write, but a head and bytes as two buffers, which costs twice as
 * much.
 */
function endWith(response: ServerResponse, bytes: Buffer | undefined): void {
  if (bytes === undefined || bytes.length > maxJoinedBytes) response.end(bytes);
  else response.end(bytes.toString("latin1"), "latin1");
}

/** A request's body on its way to a replica. */
class Upload {
  readonly relay: BodyRelay;
  #receiver: UpstreamConnection | undefined;
  #isWhole = false;

  constructor({ request, route }: ExchangeInput, onBytes: (count: number) => void) {
    const { socket } = request;
    // Not the request's own pause(), which lets the socket deliver another 64 KiB first, in up to 11,000 chunks.
    const source = { pause: () => void socket.pause(), resume: () => void socket.resume() };
    this.relay = new BodyRelay(source, route.load);
    request.on("data", (chunk: Buffer) => {
      onBytes(chunk.length);
      this.relay.take(chunk);
    });
    request.on("end", () => {
      this.#isWhole = true;
      this.#receiver?.endBody(this.relay.finish());
    });
  }

  sendTo(receiver: UpstreamConnection): void {
    this.#receiver = receiver;
    this.relay.sendTo(receiver);
    if (this.#isWhole) receiver.endBody(this.relay.finish());
  }
}
