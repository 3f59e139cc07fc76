import { randomUUID } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { probeHeader } from "./edge-settings.ts";

/**
 * The request head for the replica: the client's fields without hop-by-hop and forwarding ones, then ours (RFC 9110 §7.6, RFC 7239).
 * `upgrade` keeps the `Upgrade` field. Undefined when the head is ambiguous and must be refused.
 */
export function requestHead(
  request: IncomingMessage,
  target: RequestHead,
  client: Client,
  upgrade = false,
): string | undefined {
  const raw = request.rawHeaders;
  let head = `${request.method} ${target.path} HTTP/1.1\r\nHost: ${target.authority}\r\n`;
  const named = connectionOptions(request.headers.connection);
  let hosts = 0;
  let hasId = false;
  for (let i = 0; i < raw.length; i += 2) {
    const name = raw[i] as string;
    const kind = kindOf(name, named);
    if (kind === "host") hosts += 1;
    if (kind === "id" && !isRequestId(raw[i + 1] as string)) continue;
    if (kind === "id") hasId = true;
    if (kind === "pass" || kind === "id") head += `${name}: ${raw[i + 1]}\r\n`;
  }
  if (hosts > 1) return undefined;
  if (request.headers["transfer-encoding"] !== undefined) head += "Transfer-Encoding: chunked\r\n";
  if (!hasId) head += `x-request-id: ${randomUUID()}\r\n`;
  head += upgrade ? `Connection: Upgrade\r\nUpgrade: ${request.headers.upgrade}\r\n` : "Connection: keep-alive\r\n";
  return head + forwarding(target, client);
}

/** A request as it was understood: where it goes and the head that is sent there. */
export interface RequestHead {
  /** Lower case, without port or trailing dot: the key of the route. */
  readonly hostname: string;
  /** As the client wrote it, with its port. */
  readonly authority: string;
  /** Path and query, byte for byte. */
  readonly path: string;
}

/** Why a request is refused before it is routed. */
export interface Refusal {
  readonly refused: "bad_request" | "unknown_host" | "not_implemented";
}

/** Finds out which host and path a request is for. Absolute-form targets win over `Host` (RFC 9112 §3.2.2). */
export function readTarget(request: IncomingMessage): RequestHead | Refusal {
  const transferEncoding = request.headers["transfer-encoding"];
  if (transferEncoding !== undefined && transferEncoding.toLowerCase() !== "chunked")
    return { refused: "not_implemented" };
  const url = request.url as string;
  let authority = request.headers.host ?? "";
  let path = url;
  if (url.charCodeAt(0) !== slash) {
    const absolute = /^https?:\/\/([^/?#@]+)(.*)$/i.exec(url);
    if (absolute === null) return { refused: "bad_request" };
    authority = absolute[1] as string;
    path = (absolute[2] as string).startsWith("/") ? (absolute[2] as string) : `/${absolute[2]}`;
  }
  const hostname = hostnameOf(authority);
  return hostname === undefined ? { refused: "unknown_host" } : { hostname, authority, path };
}

const slash = 47;

/** The host name in a `Host` value: lower case, no port, no trailing dot; undefined when it cannot be one. */
function hostnameOf(authority: string): string | undefined {
  const found = /^([a-z0-9._-]{1,255}|\[[0-9a-f:.]{2,45}\])(?::\d{0,5})?$/i.exec(authority)?.[1];
  if (found === undefined) return undefined;
  const lower = found.toLowerCase();
  return lower.endsWith(".") ? lower.slice(0, -1) : lower;
}

/** What the edge itself says about a client in forwarding headers. */
export interface Client {
  readonly address: string;
  readonly proto: "http" | "https";
  readonly port: number;
}

/** The fields that tell a replica about the client; the end of the head included. */
function forwarding(target: RequestHead, client: Client): string {
  const node = client.address.includes(":") ? `"[${client.address}]"` : client.address;
  return (
    `X-Forwarded-For: ${client.address}\r\nX-Forwarded-Proto: ${client.proto}\r\nX-Forwarded-Host: ${target.authority}\r\n` +
    `X-Forwarded-Port: ${client.port}\r\nX-Real-IP: ${client.address}\r\n` +
    `Forwarded: for=${node};host="${target.authority}";proto=${client.proto}\r\n\r\n`
  );
}

type Kind = "pass" | "drop" | "host" | "id";

function kindOf(name: string, named: readonly string[] | undefined): Kind {
  let lower = name.toLowerCase();
  if (named?.includes(lower)) return "drop";
  // Application servers that follow CGI read `X_Real_IP` as `X-Real-IP`: a client could speak for the edge.
  if (lower.includes("_")) lower = lower.replaceAll("_", "-");
  const known = kinds.get(lower);
  if (known !== undefined) return known;
  return lower.startsWith("x-forwarded-") ? "drop" : "pass";
}

const kinds: ReadonlyMap<string, Kind> = new Map<string, Kind>([
  ["host", "host"],
  ["x-request-id", "id"],
  // `Proxy` becomes HTTP_PROXY in CGI-like servers (CVE-2016-5385); the others are hop-by-hop or the edge's own word.
  ...[
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
