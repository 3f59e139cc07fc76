import type { IncomingMessage, ServerResponse } from "node:http";
import { Attempts } from "./attempts.ts";
import type { FailureLog } from "./failure-log.ts";
import { sendPage, type PageCode } from "./pages.ts";
import { hasBody, RequestBody } from "./request-body.ts";
import type { ResponseHead } from "./response-reader.ts";
import type { LiveRoute } from "./live-routes.ts";
import type { EdgeTarget } from "./target.ts";
import type { ConnectionUser, UpstreamConnection } from "./upstream-connection.ts";

/** One client request and the way its answer is fetched. */
export interface ExchangeInput {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly route: LiveRoute;
  /** What is sent to the replica, complete with its empty line. */
  readonly head: string;
  /** The client waits for `100 Continue` before it sends its body. */
  readonly expectsContinue: boolean;
  readonly failures: FailureLog;
  /** Called once, when nothing more will happen. */
  readonly done: (exchange: Exchange) => void;
}

// RFC 9110 §9.2.2: these may be sent again when a connection dies before its answer.
const repeatable = new Set(["GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"]);
// What may not be repeated goes only over a connection that was in use just now: a replica hardly closes that one.
const freshEnoughMs = 500;

/** Fetches one answer from one of a route's replicas, and another's when the first could not be reached. */
export class Exchange implements ConnectionUser {
  /** When a byte last moved in either direction. */
  activeAtMs = performance.now();
  connecting = true;
  readonly #input: ExchangeInput;
  readonly #startedAtMs = this.activeAtMs;
  readonly #body: RequestBody | undefined;
  readonly #attempts: Attempts;
  #connection: UpstreamConnection | undefined;
  #headSent = false;
  #finished = false;

  constructor(input: ExchangeInput) {
    this.#input = input;
    this.#attempts = new Attempts(input.route);
    this.#body = hasBody(input.request) ? new RequestBody(input.request, (bytes) => this.#uploaded(bytes)) : undefined;
  }

  start(): void {
    // Covers the client that goes away; after a finished answer it is a no-op.
    this.#input.response.on("close", () => this.#clientClosed());
    this.#attempt("no replica");
  }

  /** Ends an exchange in which nothing has moved for too long. */
  expire(): void {
    if (this.connecting && this.#connection !== undefined) {
      this.#connection.destroy();
      this.connectFailed("no connection in time");
    } else if (this.#body !== undefined && !this.#body.complete && !this.#headSent) this.#fail("request_timeout");
    else this.#fail("app_timeout", this.#headSent ? "stopped in the middle of its answer" : "no answer in time");
  }

  connected(connection: UpstreamConnection): void {
    const { request, response, head, expectsContinue } = this.#input;
    this.connecting = false;
    this.#connection = connection;
    this.activeAtMs = performance.now();
    connection.send(request.method as string, head, this.#body !== undefined);
    if (this.#body === undefined) return;
    if (expectsContinue) response.writeContinue();
    this.#body.pump(connection);
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
    const { response, route } = this.#input;
    this.activeAtMs = performance.now();
    if (head.status === 101) return this.broken("switched protocols without being asked");
    try {
      response.writeHead(head.status, head.reason, head.headers);
    } catch {
      // A field that Node refuses to send on, such as a control character in a value.
      return this.#fail("app_bad_response", "a field of its head is malformed");
    }
    this.#headSent = true;
    route.usage.count(head.status, this.activeAtMs - this.#startedAtMs);
  }

  body(chunk: Buffer): void {
    this.activeAtMs = performance.now();
    this.#input.route.usage.bytesOut += chunk.length;
    if (this.#input.response.write(chunk)) return;
    const connection = this.#connection as UpstreamConnection;
    connection.pause();
    this.#input.response.once("drain", () => this.#finished || connection.resume());
  }

  end(trailers: string[]): void {
    const { request, response } = this.#input;
    if (this.#finished) return;
    if (trailers.length > 0) response.addTrailers(pairs(trailers));
    this.#connection = undefined;
    response.end();
    this.#body?.stop();
    // What the client still sends of an answered request is read and dropped, so that it sees the answer.
    if (!request.complete) request.resume();
    this.#finish();
  }

  broken(reason: string): void {
    const connection = this.#connection;
    const replay = connection?.reused === true && !connection.answered && this.#isRepeatable();
    this.#connection = undefined;
    if (this.#finished) return;
    if (!replay) return this.#fail("app_bad_response", reason);
    this.#acquire(this.#attempts.target as EdgeTarget, -1);
  }

  drained(): void {
    this.#body?.resume();
  }

  /** Goes to another replica, or fails for this reason when there is none. */
  #attempt(reason: string): void {
    const target = this.#attempts.next();
    if (target === undefined) return this.#fail("app_unreachable", reason);
    this.#acquire(target, this.#isRepeatable() ? Number.POSITIVE_INFINITY : freshEnoughMs);
  }

  #acquire(target: EdgeTarget, idleAtMostMs: number): void {
    this.connecting = true;
    this.activeAtMs = performance.now();
    const connection = target.acquire(this, idleAtMostMs);
    if (this.connecting) this.#connection = connection;
  }

  #isRepeatable(): boolean {
    return this.#body === undefined && repeatable.has(this.#input.request.method as string);
  }

  #uploaded(bytes: number): void {
    this.activeAtMs = performance.now();
    this.#input.route.usage.bytesIn += bytes;
  }

  #clientClosed(): void {
    if (this.#finished) return;
    this.#connection?.destroy();
    this.#connection = undefined;
    this.#body?.stop();
    // 499, as nginx logs it: the client left before the answer.
    if (!this.#headSent) this.#input.route.usage.count(499, performance.now() - this.#startedAtMs);
    this.#finish();
  }

  #fail(code: PageCode, reason?: string): void {
    const { request, response, route, failures } = this.#input;
    if (reason !== undefined) failures.note(route.usage.projectId, code, reason);
    this.#connection?.destroy();
    this.#connection = undefined;
    this.#body?.stop();
    if (this.#headSent) {
      response.destroy();
    } else {
      // A client that was never told to continue may send its body or leave it out: the next request can't be told apart.
      if (this.#input.expectsContinue && this.#body?.started === false) response.shouldKeepAlive = false;
      route.usage.count(sendPage(request, response, code), performance.now() - this.#startedAtMs);
      if (!request.complete) request.resume();
    }
    this.#finish();
  }

  #finish(): void {
    if (this.#finished) return;
    this.#finished = true;
    this.#attempts.leave();
    this.#input.done(this);
  }
}

function pairs(flat: readonly string[]): [string, string][] {
  return Array.from({ length: flat.length / 2 }, (_, i) => [flat[2 * i] as string, flat[2 * i + 1] as string]);
}
