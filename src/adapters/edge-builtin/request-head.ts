import type { IncomingMessage } from "node:http";
import { probeHeader } from "./edge-settings.ts";

/**
 * Returns the header lines for the replica: the client's fields without hop-by-hop and forwarding ones, then the edge's own (RFC 9110 §7.6,
 * RFC 7239). The connection adds `Connection`, and the framing of a body without a length.
 */
export function requestFields(request: IncomingMessage, target: RequestTarget, client: Client): string {
  const raw = request.rawHeaders;
  const named = connectionOptions(request.headers.connection);
  let lines = `Host: ${target.authority}\r\n`;
  let hasId = false;
  for (let i = 0; i < raw.length; i += 2) {
    const [name, value] = [raw[i] as string, raw[i + 1] as string];
    const kind = kindOf(name, named);
    const isId: boolean = kind === "id" && !hasId && isRequestId(value);
    if (isId || kind === "pass") lines += `${name}: ${value}\r\n`;
    hasId ||= isId;
  }
  if (!hasId) lines += `x-request-id: ${client.id}-${(client.requests += 1)}\r\n`;
  if (lacksLength(request)) lines += "content-length: 0\r\n";
  return lines + forwardingFields(target, client);
}

/** Returns whether the request says nothing about its body although servers require that for its method (RFC 9110 §8.6). */
function lacksLength({ method, headers }: IncomingMessage): boolean {
  const mayHaveBody = method === "POST" || method === "PUT" || method === "PATCH";
  return mayHaveBody && headers["content-length"] === undefined && headers["transfer-encoding"] === undefined;
}

/** The target of a request, parsed and validated. */
export interface RequestTarget {
  /** Lower case, without port or trailing dot: the key of the route. */
  readonly hostname: string;
  /** As the client sent it, with its port. */
  readonly authority: string;
  /** Path and query, unchanged. */
  readonly path: string;
}

/** The reason to refuse a request before routing. */
export type Refusal = "bad_request" | "unknown_host" | "not_implemented" | "method_not_allowed";

/**
 * Parses the host and path of a request, or returns why it is refused. A URL in absolute form must name the same host as `Host` (RFC 9112
 * §3.2.2).
 */
export function readTarget(request: IncomingMessage): RequestTarget | Refusal {
  // TRACE would reveal HttpOnly cookies to a page's script.
  if (request.method === "TRACE") return "method_not_allowed";
  const transferEncoding = request.headers["transfer-encoding"];
  if (transferEncoding !== undefined && transferEncoding.toLowerCase() !== "chunked") return "not_implemented";
  if (countOf(request.rawHeaders, "host") > 1) return "bad_request";
  const authority = request.headers.host ?? "";
  const hostname = hostnameOf(authority);
  const path = pathOf(request.url as string, authority);
  if (path === undefined) return "bad_request";
  return hostname === undefined ? "unknown_host" : { hostname, authority, path };
}

function pathOf(url: string, authority: string): string | undefined {
  if (/[^\x21-\xff]/.test(url)) return undefined;
  if (url.charCodeAt(0) === slash) return url;
  const absolute = /^https?:\/\/([^/?#@]+)(.*)$/i.exec(url);
  if (absolute?.[1]?.toLowerCase() !== authority.toLowerCase()) return undefined;
  const rest = absolute[2] as string;
  return rest.startsWith("/") ? rest : `/${rest}`;
}

function countOf(raw: readonly string[], name: string): number {
  let count = 0;
  for (let i = 0; i < raw.length; i += 2) {
    if ((raw[i] as string).length === name.length && (raw[i] as string).toLowerCase() === name) count += 1;
  }
  return count;
}

const slash = 47;

/** Returns the host name of a `Host` value in lower case, without port and trailing dot; undefined when it is not a valid one. */
function hostnameOf(authority: string): string | undefined {
  const found = /^([a-z0-9._-]{1,255}|\[[0-9a-f:.]{2,45}\])(?::\d{0,5})?$/i.exec(authority)?.[1];
  if (found === undefined) return undefined;
  const lower = found.toLowerCase();
  return lower.endsWith(".") ? lower.slice(0, -1) : lower;
}

/** The client's data for forwarding headers. */
export interface Client {
  /** Unique to the connection. */
  readonly id: string;
  /** The number of its requests that came without a request id. */
  requests: number;
  readonly address: string;
  readonly proto: "http" | "https";
  readonly port: number;
}

function forwardingFields({ authority }: RequestTarget, { address, proto, port }: Client): string {
  return (
    `X-Forwarded-For: ${address}\r\nX-Forwarded-Proto: ${proto}\r\nX-Forwarded-Host: ${authority}\r\nX-Forwarded-Port: ${port}\r\n` +
    `X-Real-IP: ${address}\r\n`
  );
}

type Kind = "pass" | "drop" | "id";

function kindOf(name: string, named: readonly string[] | undefined): Kind {
  let lower = name.toLowerCase();
  if (named?.includes(lower)) return "drop";
  // CGI-style application servers read `X_Real_IP` as `X-Real-IP`, so with it a client could forge the edge's fields.
  if (lower.includes("_")) lower = lower.replaceAll("_", "-");
  const known = kinds.get(lower);
  if (known !== undefined) return known;
  return lower.startsWith("x-forwarded-") ? "drop" : "pass";
}

const kinds: ReadonlyMap<string, Kind> = new Map<string, Kind>([
  ["x-request-id", "id"],
  // `Proxy` becomes HTTP_PROXY in CGI-like servers (CVE-2016-5385); the others are hop-by-hop, or the edge sets them.
  ...[
    "host",
    "connection",
    "keep-alive",
    "proxy-connection",
    "transfer-encoding",
    "upgrade",
    "te",
    "expect",
    "http2-settings",
  ].map((name) => [name, "drop"] as const),
  ...["proxy", "proxy-authorization", "forwarded", "x-real-ip", probeHeader].map((name) => [name, "drop"] as const),
]);

function connectionOptions(value: string | undefined): string[] | undefined {
  if (value === undefined || value.length < 11) return undefined;
  const words = value.toLowerCase().split(",");
  return words.map((word) => word.trim()).filter((word) => word !== "" && word !== "host" && word !== "content-length");
}

function isRequestId(value: string): boolean {
  return /^[\w.:/+=-]{1,128}$/.test(value);
}

/** Returns whether a body follows the request's head. */
export function hasBody({ headers }: IncomingMessage): boolean {
  return (headers["content-length"] ?? "0") !== "0" || headers["transfer-encoding"] !== undefined;
}

/** Returns how many bytes the request's body has; 0 if the request does not say. */
export function statedLength({ headers }: IncomingMessage): number {
  return Number(headers["content-length"] ?? 0);
}

/** Returns whether a request with a body states its length. */
export function hasLength({ headers }: IncomingMessage): boolean {
  return headers["content-length"] !== undefined;
}
