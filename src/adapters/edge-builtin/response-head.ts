import { STATUS_CODES } from "node:http";

/** A replica's response head as sent to the client. */
export interface ResponseHead {
  /** Undefined when the replica's reason phrase has characters that are not allowed in a head. */
  readonly reason: string | undefined;
  /** Alternating names and values, in the replica's order and spelling, without hop-by-hop fields (RFC 9110 §7.6.1). */
  readonly headers: string[];
}

/**
 * Builds the head from alternating names and values. Keeps `Trailer` only if the client also receives chunked encoding; otherwise it would
 * be invalid.
 */
export function responseHead(raw: readonly string[], reason = "", clientTakesChunks = false): ResponseHead {
  const headers: string[] = [];
  const trailers: string[] = [];
  let chunked = false;
  let named: string[] | undefined;
  for (let i = 0; i < raw.length; i += 2) {
    const [name, value] = pairAt(raw, i);
    const kind = kindOf(name);
    if (kind === "pass") headers.push(name, value);
    else if (kind === "trailer") trailers.push(name, value);
    else if (kind === "transfer-encoding") chunked = true;
    else if (kind === "connection") named = [...(named ?? []), ...namedFields(value)];
  }
  if (named !== undefined && named.length > 0) removeFields(headers, named);
  if (chunked && clientTakesChunks) headers.push(...trailers);
  return { reason: soundReason.test(reason) ? reason : undefined, headers };
}

/** Formats a head for a bare socket, with `own` fields after the replica's. */
export function rawHead(status: number, { reason, headers }: ResponseHead, own: readonly string[]): string {
  const fields = [...headers, ...own];
  let text = `HTTP/1.1 ${status} ${reason ?? STATUS_CODES[status] ?? ""}\r\n`;
  for (let i = 0; i < fields.length; i += 2) text += `${fields[i]}: ${fields[i + 1]}\r\n`;
  return `${text}\r\n`;
}

/** Returns the trailers of a response that may be forwarded, as pairs. */
export function responseTrailers(raw: readonly string[]): [string, string][] {
  const pairs = Array.from({ length: raw.length / 2 }, (_, i) => pairAt(raw, 2 * i));
  return pairs.filter(([name]) => !isFraming(name.toLowerCase()));
}

const soundReason = /^[\t\x20-\x7e\x80-\xff]*$/;

const hopByHop = new Set([
  ...["connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade", "trailer"],
]);
const hopByHopLengths = new Set(Array.from(hopByHop, (name) => name.length));

function pairAt(raw: readonly string[], at: number): [name: string, value: string] {
  return [raw[at] as string, raw[at + 1] as string];
}

function kindOf(name: string): string {
  // The length alone excludes most fields, which saves lower-casing them.
  if (!hopByHopLengths.has(name.length)) return "pass";
  const lower = name.toLowerCase();
  return hopByHop.has(lower) ? lower : "pass";
}

function namedFields(connection: string): string[] {
  const words = connection.split(",").map((word) => word.trim().toLowerCase());
  return words.filter((word) => word !== "" && word !== "close" && word !== "keep-alive" && !isFraming(word));
}

function isFraming(name: string): boolean {
  return name === "content-length" || name === "transfer-encoding" || name === "host";
}

function removeFields(headers: string[], names: readonly string[]): void {
  for (let i = headers.length - 2; i >= 0; i -= 2) {
    if (names.includes((headers[i] as string).toLowerCase())) headers.splice(i, 2);
  }
}
