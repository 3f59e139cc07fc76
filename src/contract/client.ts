import { z } from "zod";
import { ApiError, ConnectionError, InvalidCall } from "./client-errors.ts";
import { dryRun } from "./dry-run.ts";
import { errors, type ErrorCode } from "./errors.ts";
import { route, type RouteName, type RouteNamed } from "./routes.ts";
import { bearerProtocol, changes, tunnelProtocol, type Row } from "./table.ts";

export { ApiError, ConnectionError, InvalidCall };

/** Creates a typed API client from the rows, for browsers and Node.js. Throws `InvalidCall` when the address is invalid. */
export function createClient(options: ClientOptions): Client {
  const connection = { ...options, baseUrl: normalBaseUrl(options.baseUrl) };
  const send = (row: Row, input: AnyInput = {}) => exchange(connection, row, input);
  const call = (name: RouteName, input: AnyInput = {}) => send(route(name), input);
  const follow = (name: RouteName, input: AnyInput = {}) => pages(connection, route(name), input);
  const signInLink = () => exchangeLink(connection);
  const { baseUrl } = connection;
  const tunnel = (name: RouteName, { params = {} }: AnyInput = {}) => {
    const url = baseUrl.replace(/^http/, "ws") + pathOf(route(name), params);
    return new WebSocket(url, [tunnelProtocol, `${bearerProtocol}${options.token}`]);
  };
  const typed = {
    call: call as Client["call"],
    follow: follow as Client["follow"],
    tunnel: tunnel as Client["tunnel"],
  };
  return { baseUrl, send, ...typed, signInLink };
}

export interface ClientOptions {
  /** Such as `http://127.0.0.1:4000`. A path prefix is kept. */
  readonly baseUrl: string;
  /** May be absent for rows that require no token. */
  readonly token?: string | undefined;
  /** Replaces `fetch`, for tests and proxies. */
  readonly fetch?: typeof fetch;
  /** Time limit of an ordinary call. Default 30 s. */
  readonly timeoutMs?: number;
  /** Time limit of a row with `waits`. Default 5 min: one minute for a health check, plus time for starts and drains. */
  readonly waitTimeoutMs?: number;
}

export interface Client {
  readonly baseUrl: string;
  /**
   * Calls the row with this name. Resolves with the result as the server sent it (including fields that this version doesn't know), or
   * undefined for 204. Throws `ApiError` for an error response, `ConnectionError` when there was no usable response, `InvalidCall` when the
   * request could not be sent.
   */
  call<N extends RouteName>(name: N, ...input: Argument<CallInput<N>>): Promise<Answer<N>>;
  /**
   * Calls a streaming row with `follow=true` and yields pages as they arrive. Returns when the stream ends; to continue, call again with
   * the last page's cursor. When a server or proxy responds without a stream, yields its one page. Throws like `call`.
   */
  follow<N extends RouteName>(name: N, ...input: Argument<CallInput<N>>): AsyncGenerator<Answer<N>>;
  /** Opens the WebSocket of a row that upgrades. The token is an offered subprotocol: a browser's WebSocket can set no header. */
  tunnel<N extends RouteName>(name: N, ...input: Argument<CallInput<N>>): WebSocket;
  /** Returns a URL that signs a browser in to the dashboard with this client's token, once and within 15 minutes. */
  signInLink(): Promise<{ readonly url: string }>;
  /** Like `call`, for a row that is known only at run time. */
  send(row: Row, input?: AnyInput): Promise<unknown>;
}

export type Answer<N extends RouteName> = RouteNamed<N>["result"] extends z.ZodType
  ? z.output<RouteNamed<N>["result"]>
  : undefined;

/** The input of a row: path parameters and a body are required where the row has them; a query is always optional. */
export type CallInput<N extends RouteName> = ParamsInput<N> &
  QueryInput<N> &
  BodyInput<N> &
  Pick<AnyInput, "fetch" | "signal">;

export interface AnyInput {
  readonly params?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, QueryValue | undefined>>;
  readonly body?: unknown;
  /** The file for a row with `upload`. */
  readonly upload?: ReadableStream<Uint8Array> | Uint8Array<ArrayBuffer> | Blob | undefined;
  /** Makes repeating a write safe: the server returns the first response without running the write again. */
  readonly idempotencyKey?: string | undefined;
  /** Replaces `fetch` for this call, for example to report how much of a file was sent. */
  readonly fetch?: typeof fetch | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** A list is sent as a repeated parameter. */
type QueryValue = string | number | boolean | readonly string[];
type Argument<I> = object extends I ? [input?: I] : [input: I];
type Keys<N extends RouteName, Part extends "params" | "query"> = keyof RouteNamed<N>[Part]["shape"] & string;
type ParamsInput<N extends RouteName> = [Keys<N, "params">] extends [never]
  ? object
  : { readonly params: { readonly [K in Keys<N, "params">]: string } };
type QueryInput<N extends RouteName> = [Keys<N, "query">] extends [never]
  ? object
  : { readonly query?: { readonly [K in Keys<N, "query">]?: QueryValue | undefined } };
type BodyInput<N extends RouteName> = RouteNamed<N>["body"] extends z.ZodType
  ? { readonly body: z.input<RouteNamed<N>["body"]> }
  : RouteNamed<N>["upload"] extends string
    ? { readonly upload: NonNullable<AnyInput["upload"]> }
    : object;

const defaultTimeoutMs = 30_000;
const defaultWaitTimeoutMs = 300_000;

async function exchange(options: ClientOptions, row: Row, input: AnyInput): Promise<unknown> {
  const timeoutMs = row.waits
    ? (options.waitTimeoutMs ?? defaultWaitTimeoutMs)
    : (options.timeoutMs ?? defaultTimeoutMs);
  const timeout = AbortSignal.timeout(timeoutMs);
  const signal = input.signal === undefined ? timeout : AbortSignal.any([timeout, input.signal]);
  const url = options.baseUrl + pathOf(row, input.params ?? {}) + queryOf(input.query ?? {});
  try {
    const response = await (input.fetch ?? options.fetch ?? fetch)(url, { ...requestOf(options, row, input), signal });
    const shape = String(input.query?.["dry_run"]) === "true" && changes(row) ? dryRun : row.result;
    return await readAnswer(response, shape, options.baseUrl);
  } catch (fault) {
    if (fault instanceof ApiError || fault instanceof ConnectionError) throw fault;
    if (input.signal?.aborted) throw input.signal.reason;
    if (timeout.aborted)
      throw new ConnectionError("timeout", `${options.baseUrl} did not answer within ${timeoutMs / 1000} s.`, {
        cause: fault,
      });
    throw unreachable(options.baseUrl, fault);
  }
}

async function exchangeLink(options: ClientOptions): Promise<{ readonly url: string }> {
  const headers = { authorization: `Bearer ${options.token ?? ""}` };
  const signal = AbortSignal.timeout(options.timeoutMs ?? defaultTimeoutMs);
  const request = { method: "POST", headers, signal, redirect: "manual" } as const;
  try {
    const response = await (options.fetch ?? fetch)(`${options.baseUrl}/session/link`, request);
    return (await readAnswer(response, z.object({ url: z.string() }), options.baseUrl)) as { url: string };
  } catch (fault) {
    if (fault instanceof ApiError || fault instanceof ConnectionError) throw fault;
    throw unreachable(options.baseUrl, fault);
  }
}

// The server sends at least a heartbeat every 15 s.
const silenceMs = 45_000;

async function* pages(options: ClientOptions, row: Row, input: AnyInput): AsyncGenerator<unknown> {
  const quiet = new AbortController();
  let timer = setTimeout(() => quiet.abort(), silenceMs);
  const alive = () => {
    clearTimeout(timer);
    timer = setTimeout(() => quiet.abort(), silenceMs);
  };
  const signal = input.signal === undefined ? quiet.signal : AbortSignal.any([quiet.signal, input.signal]);
  const url = options.baseUrl + pathOf(row, input.params ?? {}) + queryOf({ ...input.query, follow: true });
  const request = requestOf(options, row, input);
  const headers = { ...request.headers, accept: "text/event-stream, application/json" };
  try {
    const response = await (options.fetch ?? fetch)(url, { ...request, headers, signal });
    const isStream = response.headers.get("content-type")?.startsWith("text/event-stream") === true;
    if (!isStream || response.body === null) {
      yield await readAnswer(response, row.result, options.baseUrl);
      return;
    }
    for await (const { event, data } of readEvents(response.body, alive)) {
      const document = parseJson(data);
      if (event === "error" && isErrorBody(document)) throw new ApiError(statusOf(document), document);
      yield document;
    }
  } catch (fault) {
    if (fault instanceof ApiError || fault instanceof ConnectionError) throw fault;
    if (input.signal?.aborted) throw input.signal.reason;
    throw unreachable(options.baseUrl, fault);
  } finally {
    clearTimeout(timer);
  }
}

/** An error in the middle of a stream comes after status 200, so its code determines the status that it stands for. */
function statusOf({ code }: Readonly<Record<string, unknown>>): Response {
  const { status } = errors[code as ErrorCode] ?? errors.internal;
  return new Response(null, { status });
}

// fetch requires this option for a streamed body; TypeScript's types lack it.
const halfDuplex: object = { duplex: "half" };

interface OurRequest extends RequestInit {
  readonly headers: Readonly<Record<string, string>>;
}

// Builds a request that follows no redirect: a redirect could turn a PUT into a GET and send the token to another host.
function requestOf(options: ClientOptions, row: Row, { body, upload, idempotencyKey }: AnyInput): OurRequest {
  const headers: Record<string, string> = { accept: "application/json" };
  if (idempotencyKey !== undefined) headers["idempotency-key"] = idempotencyKey;
  if (options.token !== undefined) headers["authorization"] = `Bearer ${options.token}`;
  if (upload !== undefined) {
    headers["content-type"] = row.upload === "file" ? "application/octet-stream" : "application/x-tar";
    return { method: row.method, headers, redirect: "manual", body: upload, ...halfDuplex };
  }
  if (body === undefined) return { method: row.method, headers, redirect: "manual" };
  headers["content-type"] = "application/json";
  return { method: row.method, headers, redirect: "manual", body: JSON.stringify(body) };
}

async function readAnswer(response: Response, shape: z.ZodType | null, baseUrl: string): Promise<unknown> {
  if (response.status === 204) return undefined;
  const document = parseJson(await response.text());
  if (!response.ok) {
    if (isErrorBody(document)) throw new ApiError(response, document);
    throw new ConnectionError(
      "unexpected_answer",
      `${baseUrl} responded with ${response.status} and a body that Berth's API does not send.`,
      {
        hint: "Check that this is the address of Berth's control plane and that no other server or proxy answers in its place.",
      },
    );
  }
  if (document === undefined || shape?.safeParse(document).success === false) {
    throw new ConnectionError(
      "unexpected_answer",
      `${baseUrl} responded in a format that this version does not know.`,
      {
        hint: "Compare the versions of the platform and of this client.",
      },
    );
  }
  return document;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function isErrorBody(document: unknown): document is Readonly<Record<string, unknown>> {
  return typeof document === "object" && document !== null && "error" in document && "code" in document;
}

/** Fills the parameters into a row's path. Refuses dot segments, because URL parsers resolve them even when percent-encoded. */
function pathOf(row: Row, params: Readonly<Record<string, string>>): string {
  return row.path.replace(/:(\w+)/g, (_, name: string) => {
    const value = params[name];
    if (value === undefined || value === "") throw new InvalidCall(`${row.name} needs the parameter ${name}.`);
    if (value === "." || value === "..") throw new InvalidCall(`The parameter ${name} cannot be "${value}".`);
    return encodeURIComponent(value);
  });
}

function queryOf(query: Readonly<Record<string, QueryValue | undefined>>): string {
  const given = new URLSearchParams();
  for (const [key, value] of Object.entries(query))
    if (value !== undefined) for (const each of [value].flat()) given.append(key, String(each));
  const text = given.toString();
  return text === "" ? "" : `?${text}`;
}

function normalBaseUrl(given: string): string {
  const url = URL.parse(given);
  if (url === null || !["http:", "https:"].includes(url.protocol))
    throw new InvalidCall("The address must begin with http:// or https://.");
  if (url.username !== "" || url.password !== "")
    throw new InvalidCall("The address must not contain a user name or a password.");
  return (url.origin + url.pathname).replace(/\/+$/, "");
}

function unreachable(baseUrl: string, fault: unknown): ConnectionError {
  const cause =
    fault instanceof Error && fault.cause instanceof Error ? (fault.cause as Error & { code?: string }) : undefined;
  const host = new URL(baseUrl).hostname;
  const { message, hint } = explain(cause?.code ?? cause?.message ?? "", baseUrl, host);
  return new ConnectionError("network", message, { hint, cause: fault });
}

function explain(code: string, baseUrl: string, host: string): { message: string; hint?: string } {
  if (code === "ECONNREFUSED")
    return {
      message: `Nothing answers at ${baseUrl}: the connection was refused.`,
      hint: "Check that the platform runs there.",
    };
  if (code === "ENOTFOUND" || code === "EAI_AGAIN") {
    // Node.js does not resolve names under localhost, unlike browsers and curl.
    const hint = host.endsWith(".localhost") ? "Use 127.0.0.1 as the host." : "Check the address and the network.";
    return { message: `DNS does not resolve the host ${host}.`, hint };
  }
  if (/CERT|SELF_SIGNED|UNABLE_TO_VERIFY/.test(code)) {
    return {
      message: `The certificate of ${host} is not trusted (${code}).`,
      hint: "Set NODE_EXTRA_CA_CERTS to a file with the missing certificate authority.",
    };
  }
  // The Fetch standard blocks certain ports, such as 6667.
  if (code === "bad port")
    return {
      message: `${baseUrl} uses a port that HTTP clients refuse.`,
      hint: "Let the platform listen on another port.",
    };
  return {
    message: `The connection to ${baseUrl} broke${code === "" ? "" : ` (${code})`}.`,
    hint: "Try again. If the error persists, check the network and the platform.",
  };
}

/** One event of `text/event-stream`. */
interface StreamEvent {
  readonly id: string | undefined;
  readonly event: string;
  readonly data: string;
}

/** Parses the events of a response body as the HTML standard says. Calls `alive` for all that is received. Rejects when reading fails. */
export async function* readEvents(body: ReadableStream<Uint8Array>, alive: () => void): AsyncGenerator<StreamEvent> {
  const reader = body.pipeThrough<string>(new TextDecoderStream() as TransformStream<Uint8Array, string>).getReader();
  let text = "";
  try {
    for (let next = await reader.read(); !next.done; next = await reader.read()) {
      alive();
      const blocks = (text + next.value).split(/\r?\n\r?\n/);
      text = blocks.pop() ?? "";
      for (const block of blocks) yield* eventOf(block);
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}

function* eventOf(block: string): Generator<StreamEvent> {
  const fields = block.split(/\r?\n/).map((line) => /^([^:]+): ?(.*)$/s.exec(line));
  const values = (name: string) => fields.flatMap((field) => (field?.[1] === name ? [field[2] ?? ""] : []));
  const data = values("data");
  if (data.length > 0)
    yield { id: values("id").at(-1), event: values("event").at(-1) ?? "message", data: data.join("\n") };
}
