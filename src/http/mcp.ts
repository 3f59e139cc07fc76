import type { ServerResponse } from "node:http";
import { parse as parseQuery } from "node:querystring";
import { Readable } from "node:stream";
import type { ReadableStream as NodeStream } from "node:stream/web";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { createClient } from "../contract/client.ts";
import { limits } from "../contract/limits.ts";
import { routes } from "../contract/routes.ts";
import type { Row } from "../contract/table.ts";
import { Refused, type Caller } from "../features/context.ts";
import { authenticate } from "./admit.ts";
import { answerTo } from "./errors.ts";
import { eventStream } from "./event-stream.ts";
import type { PipelineOptions } from "./exchange.ts";
import { isForwarded } from "./forward.ts";
import type { HttpLimits } from "./http-limits.ts";
import { hostnameOf, isLocal } from "./head-check.ts";
import { watchCaller } from "./caller-watch.ts";
import { bearerOf, createLargeBodyCheck } from "./large-bodies.ts";
import { addressOf, resourceMetadataPath } from "./oauth-address.ts";
import { runPipeline } from "./pipeline.ts";

export interface McpRoute extends PipelineOptions {
  readonly http: HttpLimits;
  /** Returns a signal that aborts when the response is over or the client has left. */
  readonly goneSignal: (response: ServerResponse) => AbortSignal;
}

/** Adds the tools for agents at `/mcp`, and `/skill.md`, the page that teaches an agent this platform. */
export function addMcp(app: FastifyInstance, options: McpRoute): void {
  const controlUrl = () => options.platform.addresses.controlUrl.replace(/\/$/, "");
  const checkLarge = createLargeBodyCheck(options, options.http.bodyBytes);
  app.get("/skill.md", async (_, reply) => {
    const { skill } = await import("../mcp/serve.ts");
    return reply.type("text/markdown; charset=utf-8").send(skill(controlUrl()));
  });
  app.route({ method: ["GET", "DELETE"], url: "/mcp", handler: refuseMethod });
  app.route({
    method: "POST",
    url: "/mcp",
    bodyLimit: Math.max(limits.source_body_bytes + options.http.bodyBytes, options.http.bodyBytes),
    async onRequest(request, reply) {
      const wrong = wrongAddress(request, controlUrl());
      if (wrong !== undefined) return reply.code(421).send(wrong);
      checkOrigin(request, controlUrl());
      const caller = await callerOf(options, request).catch(ofNobody);
      if (caller === undefined) return askToConnect(request, reply, controlUrl());
      await checkLarge(request, reply);
    },
    handler: (request, reply) => serve(options, request, reply),
  });
}

function ofNobody(error: unknown): undefined {
  if (!(error instanceof Refused) || error.code !== "unauthorized") throw error;
}

/** Answers a request without a live token with where a client learns how to get one (RFC 9728, section 5.1). */
function askToConnect(request: FastifyRequest, reply: FastifyReply, controlUrl: string): FastifyReply {
  const error = bearerOf(request) === undefined ? "" : `, error="invalid_token"`;
  const metadata = `${addressOf(request, controlUrl)}${resourceMetadataPath}`;
  return reply
    .code(401)
    .header("www-authenticate", `Bearer resource_metadata="${metadata}"${error}`)
    .send(answerTo(new Refused("unauthorized")).body);
}

async function refuseMethod(_: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
  return reply
    .code(405)
    .header("allow", "POST")
    .send(answerTo(new Refused("method_not_allowed")).body);
}

function callerOf(options: PipelineOptions, request: FastifyRequest): Promise<Caller> {
  return authenticate(options, { token: bearerOf(request), address: request.clientAddress });
}

/** Returns the refusal of a request that was sent to another of the platform's names; clients keep a token for each address. */
function wrongAddress({ headers }: FastifyRequest, controlUrl: string): object | undefined {
  const hostname = hostnameOf(headers.host ?? "localhost");
  if (isLocal(hostname) || hostname === new URL(controlUrl).hostname || isForwarded(headers)) return undefined;
  return { error: `The tools are at ${controlUrl}/mcp.`, code: "invalid_request", hint: `Use ${controlUrl}/mcp.` };
}

/** Refuses a page of another site: a program sends no `Origin`. */
function checkOrigin({ headers }: FastifyRequest, controlUrl: string): void {
  if (headers.origin === undefined || headers.origin === new URL(controlUrl).origin) return;
  throw new Refused("forbidden", { error: "Pages of other sites may not call the tools." });
}

async function serve(options: McpRoute, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
  const caller = await callerOf(options, request);
  const token = bearerOf(request) ?? "";
  // Counted apart from the calls, which count as over HTTP.
  const { headers, refused } = options.limiter.count("readsPerMinute", `mcp ${caller.token_id}`);
  void reply.headers(headers);
  if (refused !== undefined) throw refused;
  const gone = options.goneSignal(reply.raw);
  const isSubscription = (request.body as { method?: unknown } | null)?.method === "subscriptions/listen";
  const close = isSubscription ? options.streams.open(caller) : undefined;
  const ends = [gone, options.closing];
  const { signal, end } = watchCaller({ ...options, wakeups: options.platform.wakeups, token, caller, ends });
  const whenGone = () => (end(), close?.());
  // A client that left during the token look-up has aborted it already.
  if (gone.aborted) whenGone();
  else gone.addEventListener("abort", whenGone, { once: true });
  const { controlUrl } = options.platform.addresses;
  const fetch = inProcess(options, { address: request.clientAddress, requestId: request.id });
  const tools = {
    client: createClient({ baseUrl: controlUrl, token, fetch, timeoutMs: 90_000 }),
    offer: { readOnly: caller.scopes.every((scope) => scope.endsWith(":read")) },
    version: options.platform.version,
    token,
    warning: caller.platform_admin ? adminWarning : undefined,
    signal,
  };
  const { serveMcp } = await import("../mcp/serve.ts");
  const heads = Object.entries(request.headers).flatMap(([name, value]) =>
    typeof value === "string" ? [[name, value] as [string, string]] : [],
  );
  const asked = new Request(`${new URL(controlUrl).origin}/mcp`, { method: "POST", headers: heads, signal });
  const answer = await serveMcp(tools, asked, request.body);
  reply.code(answer.status).headers(Object.fromEntries(answer.headers));
  if (answer.body === null) return reply.send();
  const content = Readable.fromWeb(answer.body as NodeStream);
  signal.addEventListener("abort", () => content.destroy(), { once: true });
  return reply.send(content);
}

const adminWarning =
  "This login is the platform administrator's: it reaches settings of every organization, so change only what the user asked for.";

const rows = (routes as readonly Row[])
  .filter(({ upload }) => upload === null)
  .map((row) => ({
    row,
    pattern: new RegExp(`^${row.path.replaceAll(".", "\\.").replaceAll(/:(\w+)/g, "(?<$1>[^/]+)")}$`),
  }));

type Origin = Readonly<Record<"address" | "requestId", string>>;

/** Creates a `fetch` that passes requests to the pipeline, in this process, as if the client had sent them over HTTP. */
function inProcess(options: McpRoute, origin: Origin): typeof fetch {
  return async (input, { method = "GET", headers, body, signal } = {}) => {
    const url = new URL(input instanceof Request ? input.url : input);
    const more = new Headers();
    const found = find(method, url.pathname);
    try {
      if (found === undefined) throw new Refused("not_found");
      if (Buffer.byteLength(url.pathname + url.search) > options.http.urlBytes)
        throw new Refused("payload_too_large", { error: "The URL is too long." });
      const { row, params } = found;
      if (typeof body === "string" && Buffer.byteLength(body) > (row.body_bytes ?? options.http.bodyBytes))
        throw new Refused("payload_too_large");
      const sent = { url, params, headers: new Headers(headers), body, signal, origin, more };
      return await Promise.race([answer(options, row, sent), aborted(signal)]);
    } catch (error) {
      if (signal?.aborted === true) throw error;
      const { status, headers: own, body: document, kind } = answerTo(error, found?.params);
      if (kind === "fault") options.log.error({ request_id: origin.requestId, err: error }, "a tool's call failed");
      for (const [name, value] of Object.entries(own)) more.set(name, value);
      more.set("x-request-id", origin.requestId);
      return Response.json(document, { status, headers: more });
    }
  };
}

/** Rejects when the signal aborts, as a `fetch` does, though the work may go on. */
function aborted(signal: AbortSignal | null | undefined): Promise<never> {
  return new Promise((_, reject) => {
    if (signal?.aborted === true) reject(signal.reason as Error);
    signal?.addEventListener("abort", () => reject(signal.reason as Error), { once: true });
  });
}

function find(method: string, path: string) {
  for (const { row, pattern } of rows) {
    const groups = row.method === method ? pattern.exec(path)?.groups : undefined;
    if (groups === undefined && !(row.method === method && pattern.test(path))) continue;
    const entries = Object.entries(groups ?? {}).map(([name, value]) => [name, decodeURIComponent(value)]);
    return { row, params: Object.fromEntries(entries) as Record<string, string> };
  }
  return undefined;
}

interface Sent {
  readonly url: URL;
  readonly params: Readonly<Record<string, string>>;
  readonly headers: Headers;
  readonly body: unknown;
  readonly signal: AbortSignal | null | undefined;
  readonly origin: Origin;
  /** Headers for the response. */
  readonly more: Headers;
}

async function answer(options: McpRoute, row: Row, sent: Sent): Promise<Response> {
  const over = new AbortController();
  const gone = AbortSignal.any(sent.signal ? [sent.signal, over.signal] : [over.signal]);
  const { headers, body, more } = sent;
  const end = () => over.abort();
  try {
    const done = await runPipeline(options, row, {
      params: sent.params,
      query: { ...parseQuery(sent.url.search.slice(1)) },
      body: typeof body === "string" ? (JSON.parse(body) as unknown) : undefined,
      token: bearerOf({ headers: { authorization: headers.get("authorization") ?? undefined } }),
      lastEventId: headers.get("last-event-id") ?? undefined,
      idempotencyKey: headers.get("idempotency-key") ?? undefined,
      ...sent.origin,
      gone: () => gone,
      whenOver: (call) => (gone.aborted ? call() : gone.addEventListener("abort", call, { once: true })),
      setHeaders: (all) => Object.entries(all).forEach(([name, value]) => more.set(name, value)),
    });
    if (done.stream === undefined) {
      end();
      return new Response(done.text ?? null, { status: done.status, headers: more });
    }
    const { events, signal, end: endStream } = done.stream;
    const content = Readable.from(eventStream(events, signal));
    content.once("close", () => (endStream(), end()));
    gone.addEventListener("abort", () => content.destroy(), { once: true });
    more.set("content-type", "text/event-stream");
    return new Response(Readable.toWeb(content) as unknown as ReadableStream, { headers: more });
  } catch (error) {
    end();
    throw error;
  }
}
