import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from "node:http";
import { Readable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from "fastify";
import { routes } from "../contract/routes.ts";
import type { Row } from "../contract/table.ts";
import { Refused, type HandlerPlatform } from "../features/context.ts";
import type { Log } from "../kit/log.ts";
import { createAuthenticator } from "./authenticator.ts";
import { addClientAddress, createClientAddress, type EdgeHeaders } from "./client-address.ts";
import { createChangeSlots } from "./change-slots.ts";
import { addDashboard, fontFaces, type BundleState, type ServePage } from "./dashboard.ts";
import { addDecisionPage } from "./decision-page.ts";
import { answerTo } from "./errors.ts";
import { eventStream } from "./event-stream.ts";
import { authenticate, isToolsText, recordUse } from "../features/tokens/tokens.ts";
import type { Forward } from "./forward.ts";
import { addHooks } from "./hooks.ts";
import { addHealth, type ReadyCheck } from "./health.ts";
import { createOpenCounts, standardLimits, toldLimits, type HttpLimits } from "./http-limits.ts";
import { readJsonBody } from "./json-body.ts";
import { bearerOf, createLargeBodyCheck } from "./large-bodies.ts";
import { methodsOf } from "./methods-of.ts";
import { createHeadCheck, type CheckHead } from "./head-check.ts";
import { addOperatorText, type OperatorText } from "./operator-texts.ts";
import type { Answer, PipelineOptions } from "./exchange.ts";
import { runPipeline } from "./pipeline.ts";
import { refuseRaw } from "./refuse-raw.ts";
import { addConsentPage } from "./consent-page.ts";
import { addDocs } from "./docs.ts";
import { addMcp } from "./mcp.ts";
import { addOauth } from "./oauth.ts";
import { createRateLimiter } from "./rate-limiter.ts";
import { securityHeaders } from "./security-headers.ts";
import { addTunnels, tunnelLimits, type TunnelLimits } from "./tunnels.ts";
import { watchUnused } from "./watch-unused.ts";
import { addPersonSignIn } from "./person-sign-in.ts";
import { addProviderSignIn } from "./provider-sign-in.ts";
import { addSignIn } from "./sign-in.ts";

export interface HttpOptions {
  readonly platform: HandlerPlatform;
  readonly log: Log;
  /** The checks behind `/readyz`. */
  readonly checks: readonly ReadyCheck[];
  /** The roles of this process, reported by `/readyz`. */
  readonly roles?: readonly string[];
  /** Forwards requests that this process can't serve; null: it serves all. */
  readonly forward?: Forward | null;
  /** Handlers of raw requests that bypass the API, such as git over HTTP. */
  readonly mounts?: readonly Mount[];
  /** Hostnames that the control port accepts, beside those of its own address, `localhost` and IP addresses. */
  readonly hostnames?: readonly string[];
  /** Endpoints outside the API, for the operator's tools. */
  readonly operatorTexts?: readonly OperatorText[];
  readonly limits?: Partial<HttpLimits>;
  /** Identifies requests through the platform's own edge. When absent, every client's address is that of the connection. */
  readonly edgeHeaders?: EdgeHeaders;
  readonly tunnels?: Partial<TunnelLimits>;
  /** The dashboard, which responds on every path without another route. */
  readonly dashboard?: { readonly bundle: () => BundleState };
}

/** Passes every request under `prefix` (such as `/git/`) to `handle`, with its body unread. */
export interface Mount {
  readonly prefix: `/${string}/`;
  /** Accepts hostnames other than the control plane's. */
  readonly anyHost?: boolean;
  readonly handle: (request: IncomingMessage, response: ServerResponse) => Promise<void>;
}

export interface HttpServer {
  /** Resolves with the port; port 0 lets the system choose one. */
  listen(address: { readonly host: string; readonly port: number }): Promise<{ readonly port: number }>;
  /** Stops accepting connections and resolves when open requests are answered; those waiting for an outcome are answered at once. */
  close(): Promise<void>;
}

/** Creates the control port's server: the API of the contract, health checks, and the mounts. */
export function createHttpServer(options: HttpOptions): HttpServer {
  const { log } = options;
  const limits: HttpLimits = { ...standardLimits, ...options.limits };
  const platform = { ...options.platform, limits: { ...options.platform.limits, ...toldLimits(limits) } };
  const find = (text: string) => authenticate(platform.db, text, "tools");
  const all = createAuthenticator({
    wakeups: platform.wakeups,
    log,
    find,
    recordUse: (id) => recordUse(platform.db, id),
  });
  // Everywhere but at /mcp, the token of a connected agent counts as none.
  const authenticator = {
    ...all,
    authenticate: async (text: string) => (isToolsText(text) ? undefined : all.authenticate(text)),
  };
  const app = createApp(options, limits);
  const addressOf = createClientAddress(options.edgeHeaders ?? (() => Promise.resolve(null)));
  addClientAddress(app, addressOf);
  addBodyReading(app);
  addHealth(app, options.checks, options.roles ?? []);
  const closing = new AbortController();
  const { outcomeDeadlineMs } = limits;
  const limiter = createRateLimiter(limits);
  const pipeline = {
    platform,
    authenticator,
    limiter,
    ...createOpenCounts(limits),
    changeSlots: createChangeSlots(limits.changes),
    closing: closing.signal,
    outcomeDeadlineMs,
    log,
  };
  for (const row of routes) if (row.upload === null) addRoute(app, row, pipeline);
  addUploads(app, pipeline, limits.requestTimeoutMs);
  addMcp(app, { ...pipeline, authenticator: all, http: limits, goneSignal });
  const checks = { checkHead: headCheckOf(options), addressOf, forward: options.forward ?? null };
  addTunnels(app.server, pipeline, checks, { ...tunnelLimits, ...options.tunnels });
  for (const text of options.operatorTexts ?? []) addOperatorText(app, text, authenticator);
  const servePage = addPages(app, options, { ...pipeline, authenticator });
  addFallbacks(app, log, servePage);
  const endUnused = watchUnused(app.server);
  return {
    async listen({ host, port }) {
      await app.listen({ host, port });
      return { port: (app.server.address() as { port: number }).port };
    },
    async close() {
      closing.abort(new Refused("unavailable", { error: "The platform is stopping." }));
      const closed = app.close();
      endUnused();
      await closed;
    },
  };
}

/** Adds what is outside the API: the dashboard, the ways to sign in, and the pages that people open without it. */
function addPages(app: FastifyInstance, options: HttpOptions, pipeline: PipelineOptions): ServePage {
  const { platform, authenticator, limiter, log } = pipeline;
  const controlUrl = () => platform.addresses.controlUrl;
  const bundle = options.dashboard?.bundle ?? (() => "failed");
  const signIn = { platform, vault: platform.vault, authenticator, limiter, controlUrl };
  addDecisionPage(app, { platform, log, signIn, fonts: () => fontFaces(bundle()) });
  addConsentPage(app, { platform, log, signIn, fonts: () => fontFaces(bundle()) });
  addDocs(app, { controlUrl, fonts: () => fontFaces(bundle()) });
  addOauth(app, { platform, limiter, log });
  addHooks(app, { platform, limiter, log });
  addSignIn(app, signIn);
  addPersonSignIn(app, signIn);
  addProviderSignIn(app, signIn);
  return addDashboard(app, bundle);
}

function createApp(options: HttpOptions, limits: HttpLimits): FastifyInstance {
  const app = fastify({
    serverFactory: (handle) => createNodeServer(handle, options, limits),
    logger: false,
    genReqId: () => randomUUID(),
    bodyLimit: limits.bodyBytes,
    // A parameter that is too long results in `not_found`; the URL's own limit is checked after routing.
    routerOptions: { maxParamLength: 8 * limits.urlBytes },
    forceCloseConnections: "idle",
    frameworkErrors: (error, request, reply) =>
      send(reply.headers(securityHeaders) as FastifyReply, errorReply(options.log, request as FastifyRequest, error)),
    clientErrorHandler: (error, socket) => refuseRaw(error, socket),
  });
  // Hooks with callbacks: a request then waits for no promise of theirs.
  app.addHook("onRequest", (request, reply, done) => {
    reply.headers(securityHeaders);
    // No route has this method, and fastify would first demand a content type.
    if (request.method === "QUERY")
      return void answerUnrouted(options.log, request as FastifyRequest, reply as FastifyReply);
    if (request.raw.url !== undefined && Buffer.byteLength(request.raw.url) > limits.urlBytes)
      return done(new Refused("payload_too_large", { error: "The URL is too long." }));
    const isUpload = ((request.routeOptions.config as Partial<Pick<Row, "upload">>).upload ?? null) !== null;
    if (hasBody(request) && !isUpload) limitBodyTime(request.raw, reply.raw, limits.requestTimeoutMs);
    done();
  });
  app.addHook("onSend", (_, reply, payload, done) => {
    if (typeof payload === "string") process.nextTick(limitStall, reply.raw, limits.stalledAnswerTimeoutMs);
    done(null, payload);
  });
  return app as unknown as FastifyInstance;
}

function headCheckOf({ hostnames = [], platform }: HttpOptions): CheckHead {
  return createHeadCheck([new URL(platform.addresses.controlUrl).hostname, ...hostnames]);
}

// Without Node's own limit for whole requests, which would abort long pushes on the same port.
function createNodeServer(handle: RequestListener, options: HttpOptions, limits: HttpLimits) {
  const { mounts = [], forward, log } = options;
  const checkHead = headCheckOf(options);
  const listener: RequestListener = (request, response) => {
    const mount = mounts.find(({ prefix }) => request.url?.startsWith(prefix));
    const fault = mount?.anyHost === true ? undefined : checkHead(request);
    if (fault !== undefined) return refuseHead(response, new Refused("invalid_request", { error: fault }));
    if (mount !== undefined) {
      for (const [name, value] of Object.entries(securityHeaders)) response.setHeader(name, value);
      return handleRaw(mount.handle(request, response), response, log);
    }
    if (forward?.wants(request)) return handleRaw(forward.request(request, response), response, log);
    handle(request, response);
  };
  const timeouts = { headersTimeout: limits.headersTimeoutMs, requestTimeout: 0, keepAliveTimeout: 65_000 };
  const server = createServer(
    {
      ...timeouts,
      connectionsCheckingInterval: 5000,
      // The head check refuses a request without a host, with an error of the API; Node's own response has no body.
      requireHostHeader: false,
      // Offers of other protocols, such as HTTP/2, are ignored.
      shouldUpgradeCallback: ({ headers }) => headers.upgrade?.toLowerCase() === "websocket",
    },
    listener,
  );
  // By default Node responds with 417 and no body.
  server.on("checkExpectation", (request, response) => void server.emit("request", request, response));
  return server;
}

function handleRaw(handled: Promise<void>, response: ServerResponse, log: Log): void {
  handled.catch((error: unknown) => {
    if (!response.headersSent && answerTo(error).kind !== "fault") return refuseHead(response, error);
    log.error({ error: String(error) }, "a mounted handler failed");
    response.destroy();
  });
}

// Closes the connection: after such a head it is unclear which bytes belong to which request.
function refuseHead(response: ServerResponse, error: unknown): void {
  const { status, body, headers: more } = answerTo(error);
  const headers = {
    ...securityHeaders,
    ...more,
    "content-type": "application/json; charset=utf-8",
    connection: "close",
  };
  response.writeHead(status, headers).end(JSON.stringify(body));
}

function hasBody({ headers }: FastifyRequest): boolean {
  return headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0;
}

function limitBodyTime(request: IncomingMessage, response: ServerResponse, timeoutMs: number): void {
  const timer = setTimeout(() => request.destroy(), timeoutMs).unref();
  const clear = () => clearTimeout(timer);
  request.once("end", clear);
  // A body that was refused unread emits no `end`.
  response.once("close", clear);
}

// Node counts a socket as idle while none of the data written to it is sent. Most responses are sent whole at once and need no timer.
function limitStall(response: ServerResponse, timeoutMs: number): void {
  if (!response.writableFinished) response.setTimeout(timeoutMs, () => response.destroy());
}

function addBodyReading(app: FastifyInstance): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("*", { parseAs: "buffer" }, async (request: FastifyRequest, bytes: Buffer) =>
    readJsonBody(request.headers["content-type"], bytes),
  );
}

/** Adds the rows whose body is a file. The body is streamed to the handler without limits of size or time, as long as data keeps arriving. */
function addUploads(app: FastifyInstance, options: PipelineOptions, silenceMs: number): void {
  void app.register(async (uploads) => {
    uploads.addContentTypeParser("*", (_, body, done) => done(null, body));
    uploads.addHook("onRequest", async ({ raw }, reply) => {
      reply.header("connection", "close");
      raw.setTimeout(silenceMs, () => raw.destroy());
      raw.once("end", () => raw.setTimeout(0));
    });
    uploads.addHook("onError", async ({ raw }) => drain(raw));
    for (const row of routes) if (row.upload !== null) addRoute(uploads, row, options);
  });
}

const drainMs = 2000;

/** Keeps reading for a moment after a refusal: a client that is still sending would lose the response if the connection closed. */
async function drain(request: IncomingMessage): Promise<void> {
  if (request.readableEnded || request.destroyed) return;
  request.resume();
  await Promise.race([once(request, "close"), sleep(drainMs, undefined, { ref: false })]).catch(() => {});
}

function addRoute(app: FastifyInstance, row: Row, options: PipelineOptions): void {
  app.route({
    method: row.method,
    url: row.path,
    config: { upload: row.upload },
    ...(row.body_bytes === null ? {} : largeBodyOptions(app, row.body_bytes, options)),
    async handler(request, reply) {
      const { params, query, body, headers, id, clientAddress } = request;
      const done = await runPipeline(options, row, {
        params,
        query,
        body,
        token: bearerOf(request),
        lastEventId: headers["last-event-id"]?.toString(),
        idempotencyKey: headers["idempotency-key"]?.toString(),
        address: clientAddress,
        requestId: id,
        gone: () => goneSignal(reply.raw),
        whenOver: (call) => whenOver(reply.raw, call),
        setHeaders: (more) => void reply.headers(more),
      });
      if (done.stream !== undefined) return sendStream(reply, done.stream, id);
      return send(reply, { status: done.status, headers: {}, text: done.text, requestId: id });
    },
  });
}

function largeBodyOptions(app: FastifyInstance, mostBytes: number, options: PipelineOptions) {
  // The framework's own limit is configurable and may be larger.
  const usual = app.initialConfig.bodyLimit ?? 0;
  return { bodyLimit: Math.max(mostBytes, usual), onRequest: createLargeBodyCheck(options, usual) };
}

const cutAfterMs = 250;

/** Ends the work for a client that closed its connection; no defect, so it is not logged. */
class ClientLeft extends Error {}

function goneSignal(response: ServerResponse): AbortSignal {
  const gone = new AbortController();
  whenOver(response, () => gone.abort(new ClientLeft("the client has left")));
  return gone.signal;
}

// A client that disconnected during the token look-up has already closed its response.
function whenOver(response: ServerResponse, call: () => void): void {
  if (response.destroyed) call();
  else response.once("close", call);
}

function sendStream(reply: FastifyReply, stream: NonNullable<Answer["stream"]>, requestId: string): FastifyReply {
  const { events, signal, end } = stream;
  const content = Readable.from(eventStream(events, signal), { objectMode: false });
  content.once("close", end);
  // A client that stops reading would otherwise keep its connection, and the data queued for it, after it lost its rights.
  const cut = () => setTimeout(() => reply.raw.destroy(), cutAfterMs).unref();
  signal.addEventListener("abort", cut, { once: true });
  // Keeps proxies such as nginx from buffering events. Keep-alive after a stream would delay a stop of the platform.
  const own = { "x-accel-buffering": "no", connection: "close" };
  return reply
    .code(200)
    .headers({ ...own, "x-request-id": requestId })
    .type("text/event-stream; charset=utf-8")
    .send(content);
}

function addFallbacks(app: FastifyInstance, log: Log, servePage: ServePage): void {
  app.setErrorHandler((error, request, reply) => send(reply, errorReply(log, request, error)));
  app.setNotFoundHandler((request, reply) => servePage(request, reply) ?? answerUnrouted(log, request, reply));
}

function answerUnrouted(log: Log, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const methods = methodsOf(request.url);
  if (methods.length === 0) {
    const error = new Refused("not_found", { error: "There is no such route. GET /v1/capabilities lists them all." });
    return send(reply, errorReply(log, request, error));
  }
  const allow = methods.join(", ");
  if (request.method === "OPTIONS")
    return send(reply, { status: 204, headers: { allow }, text: undefined, requestId: request.id });
  const refused = errorReply(log, request, new Refused("method_not_allowed"));
  return send(reply, { ...refused, headers: { ...refused.headers, allow } });
}

export interface Reply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string | undefined;
  readonly requestId: string;
}

function send(reply: FastifyReply, { status, headers, text, requestId }: Reply): FastifyReply {
  reply.code(status).headers(headers).header("x-request-id", requestId);
  return text === undefined ? reply.send() : reply.type("application/json; charset=utf-8").send(text);
}

function errorReply(log: Log, request: FastifyRequest, error: unknown): Reply {
  const { status, headers, body, kind } = answerTo(error, request.params);
  // Logs the route, not the URL: a query string may accidentally hold a secret.
  const said = { request_id: request.id, method: request.method, route: request.routeOptions?.url };
  if (kind === "fault" && !(error instanceof ClientLeft)) log.error({ ...said, err: error }, "a request failed");
  if (kind === "outage")
    log.warn({ ...said, error: String(error) }, "a request failed because the database is unavailable");
  return { status, headers, text: JSON.stringify(body), requestId: request.id };
}
