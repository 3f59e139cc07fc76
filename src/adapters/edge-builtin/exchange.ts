import type { IncomingMessage, ServerResponse } from "node:http";
import { PassThrough } from "node:stream";
import type { Dispatcher } from "undici";
import { BodyRelay } from "./body-relay.ts";
import type { FailureLog } from "./failure-log.ts";
import type { LiveRoute } from "./live-routes.ts";
import type { PageCode } from "../../ports/edge-pages.ts";
import { sendPage } from "./pages.ts";
import { hasBody } from "./request-head.ts";
import { hasTooManyFields, responseHead, responseTrailers } from "./response-head.ts";
import type { ClientOutput } from "./slow-clients.ts";
import { UpstreamAttempts, type AttemptsUser } from "./upstream-attempts.ts";
import type { UpstreamConnection } from "./upstream-connection.ts";

/** One client request and the way its answer is fetched. */
export interface ExchangeInput {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly route: LiveRoute;
  /** As the replica gets it: names and values in turn. */
  readonly headers: string[];
  readonly path: string;
  /** The client waits for `100 Continue` before it sends its body. */
  readonly expectsContinue: boolean;
  readonly failures: FailureLog;
  /** Called once, when nothing more will happen. */
  readonly done: (exchange: Exchange) => void;
}

type Controller = Dispatcher.DispatchController;

// More interim responses (1xx) than this are an attack on the edge's time.
const maxInterimResponses = 64;
// RFC 9110 §9.2.2: these may be sent again when a connection ends before its answer.
const repeatable = new Set(["GET", "HEAD", "OPTIONS", "PUT", "DELETE"]);
// Longer ones are not worth their copy.
const maxJoinedBytes = 8 * 1024;
// What may not be repeated goes only over a connection that was in use just now: a replica hardly closes that one.
const freshEnoughMs = 500;

/** Fetches one answer from one of a route's replicas. */
export class Exchange implements AttemptsUser, ClientOutput, Dispatcher.DispatchHandler {
  /** When a byte last moved in either direction. */
  activeAtMs = performance.now();
  readonly attempts: UpstreamAttempts;
  readonly #input: ExchangeInput;
  readonly #startedAtMs = this.activeAtMs;
  readonly #upload: Upload | undefined;
  #download: BodyRelay | undefined;
  #connection: UpstreamConnection | undefined;
  #bytesBefore = 0;
  #wasSent = false;
  #interim = 0;
  #finished = false;

  constructor(input: ExchangeInput) {
    this.#input = input;
    this.attempts = new UpstreamAttempts(input.route, this);
    if (hasBody(input.request)) this.#upload = startUpload(input, (bytes) => this.#uploaded(bytes));
  }

  start(): void {
    // Covers the client that goes away; after a finished answer it changes nothing.
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

  /** Ends an exchange in which nothing has moved for too long. */
  expire(): void {
    const { request, response } = this.#input;
    if (!response.headersSent && this.#upload !== undefined && !request.complete) this.#fail("request_timeout");
    else this.#fail("app_timeout", response.headersSent ? "stopped in the middle of its answer" : "no answer in time");
  }

  connected(connection: UpstreamConnection): void {
    const { request, headers, path } = this.#input;
    this.activeAtMs = performance.now();
    this.#connection = connection;
    this.#bytesBefore = connection.socket.bytesRead;
    connection.socket.beginHead();
    const body = this.#upload?.body ?? null;
    connection.client.dispatch({ method: request.method as Dispatcher.HttpMethod, path, headers, body }, this);
  }

  unreachable(reason: string): void {
    this.#fail("app_unreachable", reason);
  }

  onRequestStart(): void {
    this.#wasSent = true;
    if (this.#upload === undefined) return;
    if (this.#input.expectsContinue) this.#input.response.writeContinue();
    this.#upload.relay.sendTo(this.#upload.body);
  }

  onResponseStart(controller: Controller, status: number, _headers: unknown, reason?: string): void {
    this.activeAtMs = performance.now();
    if (status < 200) return this.#interimResponse();
    this.#connection?.socket.endHead();
    const { request, response, route } = this.#input;
    const fields = controller.rawHeaders as Buffer[];
    if (hasTooManyFields(fields)) return this.#fail("app_bad_response", "too many fields");
    const takesChunks = request.httpVersionMinor === 1 && request.method !== "HEAD" && status !== 204 && status !== 304;
    const head = responseHead(fields, reason, takesChunks);
    try {
      response.writeHead(status, head.reason, head.headers);
    } catch (error) {
      // A status or field that Node does not send on.
      return this.#fail("app_bad_response", (error as Error).message);
    }
    route.usage.count(status, this.activeAtMs - this.#startedAtMs);
    this.#download = new BodyRelay(controller, route.load);
    this.#download.sendTo(response);
    // A head that comes alone goes out alone, as that of a stream without news.
    queueMicrotask(() => void (this.#download?.isUnread === true && !this.#finished && response.flushHeaders()));
  }

  onResponseData(_controller: Controller, chunk: Buffer): void {
    this.activeAtMs = performance.now();
    this.#input.route.usage.bytesOut += chunk.length;
    this.#download?.take(chunk);
  }

  onResponseEnd(controller: Controller): void {
    const { response } = this.#input;
    const [target, connection] = [this.attempts.target, this.#connection];
    if (this.#finished || this.#download === undefined) return;
    const trailers = controller.rawTrailers as Buffer[] | null;
    if (trailers !== null && trailers.length > 0) response.addTrailers(responseTrailers(trailers));
    endWith(response, this.#download.finish());
    this.#finish();
    // undici closes a connection whose state is unclear, as after garbage or half a request, once this has returned.
    queueMicrotask(() => void (connection?.socket.destroyed === false && target?.keep(connection)));
  }

  onResponseError(_controller: Controller, error: Error): void {
    if (this.#finished) return;
    const connection = this.#connection;
    if ((error as NodeJS.ErrnoException).code === "UND_ERR_INVALID_ARG") return this.#fail("bad_request");
    const mayRepeat = !this.#wasSent || (connection?.socket.bytesRead === this.#bytesBefore && this.#isRepeatable());
    if (connection?.reused !== true || !mayRepeat) return this.#fail("app_bad_response", error.message);
    connection.socket.destroy();
    this.#connection = undefined;
    this.#wasSent = false;
    this.attempts.connectAgain();
  }

  #interimResponse(): void {
    this.#interim += 1;
    if (this.#interim > maxInterimResponses) this.#fail("app_bad_response", "too many interim responses");
  }

  #uploaded(bytes: number): void {
    this.activeAtMs = performance.now();
    this.#input.route.usage.bytesIn += bytes;
  }

  #isRepeatable(): boolean {
    return this.#upload === undefined && repeatable.has(this.#input.request.method as string);
  }

  #clientClosed(): void {
    if (this.#finished) return;
    const { response, route } = this.#input;
    // 499, as nginx logs it: the client left before the answer.
    if (!response.headersSent) route.usage.count(499, performance.now() - this.#startedAtMs);
    this.#finish();
    this.#connection?.socket.destroy();
  }

  #fail(code: PageCode, reason?: string): void {
    const { request, response, route, failures, expectsContinue } = this.#input;
    if (this.#finished) return;
    if (reason !== undefined) failures.note(route.usage.projectId, code, reason);
    this.#finish();
    this.#connection?.socket.destroy();
    if (response.headersSent) return void response.destroy();
    // A client that waits for `100 Continue` may send its body or leave it out: it can't be distinguished from the next request.
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

/** Node.js sends a head and a string in one write, but a head and bytes as a list of two, which costs it twice as much. */
function endWith(response: ServerResponse, bytes: Buffer | undefined): void {
  if (bytes === undefined || bytes.length > maxJoinedBytes) response.end(bytes);
  else response.end(bytes.toString("latin1"), "latin1");
}

/** A request's body on its way to a replica. */
interface Upload {
  readonly body: PassThrough;
  readonly relay: BodyRelay;
}

function startUpload({ request, route }: ExchangeInput, onBytes: (count: number) => void): Upload {
  const { socket } = request;
  // Not the request's own pause(): that one lets the socket deliver another 64 KiB first, as up to 11,000 chunks.
  const source = { pause: () => void socket.pause(), resume: () => void socket.resume() };
  const relay = new BodyRelay(source, route.load);
  const body = new PassThrough();
  body.on("error", () => {});
  request.on("data", (chunk: Buffer) => {
    onBytes(chunk.length);
    relay.take(chunk);
  });
  request.on("end", () => body.end(relay.finish()));
  return { body, relay };
}
