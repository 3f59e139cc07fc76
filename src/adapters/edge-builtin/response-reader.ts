// Why not undici, which reads well: a request then costs 60 % more. Against nginx with the same upstream (docs/performance.md) undici came to
// 0.39-0.43 of its rate, this reader with its connections to 0.6-0.7. And the rule of reuse is ours to state: a connection is kept only when
// its answer ended exactly where it said and the request was sent whole, and a request that may not be repeated never goes over one that was
// idle for long. What is accepted here, Node's own client reads alike: response-reader-properties.test.ts.

/** What an upstream's response head says, with hop-by-hop fields taken out (RFC 9110 §7.6.1). */
export interface ResponseHead {
  readonly status: number;
  readonly reason: string;
  /** Names and values in turn, in the order and spelling of the upstream. */
  readonly headers: string[];
  /** Value of `Upgrade`, for status 101. */
  readonly upgrade: string;
}

/** Gets the pieces of one response in order: any `information`, one `head`, any `body`, then `end` or `broken`. */
export interface ResponseSink {
  /** A 1xx came: the answer is on its way. */
  information(): void;
  head(head: ResponseHead): void;
  body(chunk: Buffer): void;
  end(trailers: string[]): void;
  /** The bytes are no HTTP/1.x response, or stopped in its middle. */
  broken(reason: string): void;
}

type State =
  | "idle"
  | "head"
  | "length"
  | "until-close"
  | "chunk-size"
  | "chunk-data"
  | "chunk-end"
  | "trailers"
  | "tunnel";

const maxHeadBytes = 64 * 1024;
const maxChunkLineBytes = 1024;
const endOfHead = Buffer.from("\r\n\r\n");
const endOfLine = Buffer.from("\r\n");
const nothing = Buffer.alloc(0);
// RFC 9110 §5: a token, a colon, and what Node sends on as a value; no folded lines, no lone CR or LF. It would throw at trailers of another kind.
const soundFields = /^(?:[!#$%&'*+\-.^_`|~0-9A-Za-z]+:[\t\x20-\x7e\x80-\xff]*(?:\r\n|$))*$/;
const statusLine = /^HTTP\/1\.([01]) ([1-5]\d\d)(?: (.*))?$/;

/** Reads HTTP/1.x responses off one connection, one after the other. Strict: what it doesn't understand is `broken`. */
export class ResponseReader {
  /** Whether any byte of the present response has come. */
  started = false;
  /** Whether the connection may carry another request after this response. */
  keepAlive = false;
  /** How long the upstream promised to keep the connection, from `Keep-Alive: timeout=`. */
  keepAliveHintMs: number | undefined;
  #state: State = "idle";
  #held: Buffer = nothing;
  #left = 0;
  #bodyless = false;
  #length = -1;
  #chunked = false;
  readonly #sink: ResponseSink;

  constructor(sink: ResponseSink) {
    this.#sink = sink;
  }

  /** Expects the response to a request with this method. */
  begin(method: string): void {
    this.#state = "head";
    this.started = false;
    this.#bodyless = method === "HEAD";
  }

  get idle(): boolean {
    return this.#state === "idle";
  }

  /** After status 101: bytes that came behind the head. */
  takeRest(): Buffer {
    const rest = this.#held;
    this.#held = nothing;
    return rest;
  }

  push(chunk: Buffer): void {
    this.started = true;
    let rest = this.#held.length === 0 ? chunk : Buffer.concat([this.#held, chunk]);
    this.#held = nothing;
    while (rest.length > 0) {
      const used = this.#step(rest);
      if (used === 0) {
        this.#held = rest;
        return;
      }
      rest = used === rest.length ? nothing : rest.subarray(used);
    }
  }

  /** The upstream closed: the end of a response without a length, and broken anywhere else. */
  close(): void {
    if (this.#state === "until-close") this.#end([]);
    else if (this.#state !== "idle" && this.#state !== "tunnel") this.#break("closed early");
  }

  /** Reads what can be read from the front of `rest`; 0 when more bytes are needed. */
  #step(rest: Buffer): number {
    switch (this.#state) {
      case "head":
        return this.#readHead(rest);
      case "length":
      case "chunk-data":
        return this.#readCounted(rest);
      case "until-close":
        this.#sink.body(rest);
        return rest.length;
      case "chunk-size":
        return this.#readChunkSize(rest);
      case "chunk-end":
        return this.#readChunkEnd(rest);
      case "trailers":
        return this.#readTrailers(rest);
      case "tunnel":
        return 0;
      case "idle":
        return this.#break("bytes after the end of a response");
    }
  }

  #readHead(rest: Buffer): number {
    const end = rest.indexOf(endOfHead);
    if (isBeyond(maxHeadBytes, rest, end, endOfHead)) return this.#break("response head too large");
    if (end === -1) return 0;
    const head = this.#parseHead(rest.toString("latin1", 0, end));
    if (head === undefined) return this.#break("malformed response head");
    this.#begun(head);
    return end + 4;
  }

  #begun(head: ResponseHead): void {
    if (head.status === 101) {
      this.#state = "tunnel";
      this.#sink.head(head);
    } else if (head.status < 200) {
      this.#sink.information();
    } else {
      this.#frame(head.status);
      this.#sink.head(head);
      if (this.#state === "length" && this.#left === 0) this.#end([]);
    }
  }

  /** RFC 9112 §6.3: how the end of this response's body is known. */
  #frame(status: number): void {
    this.#left = 0;
    if (this.#bodyless || status === 204 || status === 304) this.#state = "length";
    else if (this.#chunked) this.#state = "chunk-size";
    else if (this.#length >= 0) {
      this.#state = "length";
      this.#left = this.#length;
    } else {
      this.#state = "until-close";
      this.keepAlive = false;
    }
  }

  #readCounted(rest: Buffer): number {
    const part = rest.length > this.#left ? rest.subarray(0, this.#left) : rest;
    this.#left -= part.length;
    const last = this.#left === 0;
    if (last && this.#state === "chunk-data") this.#state = "chunk-end";
    this.#sink.body(part);
    if (last && this.#state === "length") this.#end([]);
    return part.length;
  }

  #readChunkSize(rest: Buffer): number {
    const end = rest.indexOf(endOfLine);
    if (isBeyond(maxChunkLineBytes, rest, end, endOfLine)) return this.#break("chunk line too long");
    if (end === -1) return 0;
    const size = /^([0-9a-f]{1,12})[ \t]*(?:;[^\r\n]*)?$/i.exec(rest.toString("latin1", 0, end))?.[1];
    if (size === undefined) return this.#break("malformed chunk size");
    this.#left = Number.parseInt(size, 16);
    this.#state = this.#left === 0 ? "trailers" : "chunk-data";
    return end + 2;
  }

  #readChunkEnd(rest: Buffer): number {
    if (rest.length < 2) return 0;
    if (rest[0] !== 13 || rest[1] !== 10) return this.#break("chunk without an end");
    this.#state = "chunk-size";
    return 2;
  }

  #readTrailers(rest: Buffer): number {
    if (rest.length >= 2 && rest[0] === 13 && rest[1] === 10) return this.#ended([], 2);
    const end = rest.indexOf(endOfHead);
    if (isBeyond(maxHeadBytes, rest, end, endOfHead)) return this.#break("trailers too large");
    if (end === -1) return 0;
    const text = rest.toString("latin1", 0, end);
    if (!soundFields.test(text)) return this.#break("malformed trailers");
    const trailers: string[] = [];
    eachField(text, (name, value) => !isFraming(name.toLowerCase()) && trailers.push(name, value));
    return this.#ended(trailers, end + 4);
  }

  #ended(trailers: string[], used: number): number {
    this.#end(trailers);
    return used;
  }

  #end(trailers: string[]): void {
    this.#state = "idle";
    this.#sink.end(trailers);
  }

  #break(reason: string): 0 {
    this.#state = "tunnel";
    this.keepAlive = false;
    this.#sink.broken(reason);
    return 0;
  }

  #parseHead(text: string): ResponseHead | undefined {
    const lineEnd = text.indexOf("\r\n");
    const start = statusLine.exec(lineEnd === -1 ? text : text.slice(0, lineEnd));
    const fieldLines = lineEnd === -1 ? "" : text.slice(lineEnd + 2);
    if (start === null || !soundFields.test(fieldLines)) return undefined;
    this.#length = -1;
    this.#chunked = false;
    this.keepAlive = start[1] === "1";
    this.keepAliveHintMs = undefined;
    const head = { status: Number(start[2]), reason: start[3] ?? "", headers: [] as string[], upgrade: "" };
    const fields = new HopByHop();
    eachField(fieldLines, (name, value) => void (fields.take(name, value) || head.headers.push(name, value)));
    if (!this.#applyFraming(fields)) return undefined;
    head.upgrade = fields.upgrade;
    if (fields.named !== undefined || this.#chunked) dropFields(head.headers, fields.named, this.#chunked);
    return head;
  }

  #applyFraming(fields: HopByHop): boolean {
    if (fields.lengthFault) return false;
    if (fields.transferEncoding !== "" && fields.transferEncoding !== "chunked") return false;
    this.#chunked = fields.transferEncoding === "chunked";
    this.#length = fields.length;
    if (fields.close) this.keepAlive = false;
    else if (fields.keep) this.keepAlive = true;
    this.keepAliveHintMs = fields.hintMs;
    return true;
  }
}

/** Whether what ends with `mark` is longer than `most`, also as long as only a part of the mark may have come. */
function isBeyond(most: number, rest: Buffer, end: number, mark: Buffer): boolean {
  return end === -1 ? rest.length >= most + mark.length : end > most;
}

/** Takes hop-by-hop fields out of a head and remembers what they said. */
class HopByHop {
  upgrade = "";
  transferEncoding = "";
  length = -1;
  lengthFault = false;
  close = false;
  keep = false;
  hintMs: number | undefined;
  /** Further fields that `Connection` named as its own. */
  named: string[] | undefined;

  /** True when the field must not go further. */
  take(name: string, value: string): boolean {
    // Most fields are told apart by their length alone, which spares them the lower-casing.
    if (!hopLengths.has(name.length)) return false;
    switch (name.toLowerCase()) {
      case "content-length":
        this.#takeLength(value);
        return false;
      case "connection":
        this.#takeConnection(value);
        return true;
      case "keep-alive":
        this.hintMs = parseHint(value);
        return true;
      case "transfer-encoding":
        this.transferEncoding = this.transferEncoding === "" ? value.toLowerCase() : "repeated";
        return true;
      case "upgrade":
        this.upgrade = value;
        return true;
      case "proxy-connection":
        return true;
      default:
        return false;
    }
  }

  #takeLength(value: string): void {
    const length = /^\d{1,15}$/.test(value) ? Number(value) : -1;
    // Also the same one twice, which clients refuse.
    this.lengthFault ||= length === -1 || this.length !== -1;
    this.length = length;
  }

  #takeConnection(value: string): void {
    for (const option of value.toLowerCase().split(",")) {
      const word = option.trim();
      if (word === "close") this.close = true;
      else if (word === "keep-alive") this.keep = true;
      else if (word !== "" && word !== "upgrade" && !isFraming(word)) (this.named ??= []).push(word);
    }
  }
}

const hopLengths = new Set(
  ["content-length", "connection", "keep-alive", "transfer-encoding", "upgrade", "proxy-connection"].map(
    (name) => name.length,
  ),
);

function isFraming(name: string): boolean {
  return name === "content-length" || name === "transfer-encoding" || name === "host";
}

function dropFields(headers: string[], named: readonly string[] | undefined, chunked: boolean): void {
  for (let i = headers.length - 2; i >= 0; i -= 2) {
    const name = (headers[i] as string).toLowerCase();
    // With both, Transfer-Encoding wins (RFC 9112 §6.1) and the length must not reach the client.
    if (named?.includes(name) || (chunked && name === "content-length")) headers.splice(i, 2);
  }
}

function parseHint(value: string): number | undefined {
  const seconds = /timeout=(\d{1,6})/i.exec(value)?.[1];
  return seconds === undefined ? undefined : Number(seconds) * 1000;
}

/** Calls `take` with the name and value of each line of `soundFields`. */
function eachField(text: string, take: (name: string, value: string) => void): void {
  let start = 0;
  while (start < text.length) {
    const next = text.indexOf("\r\n", start);
    const end = next === -1 ? text.length : next;
    const colon = text.indexOf(":", start);
    take(text.slice(start, colon), text.slice(colon + 1, end).trim());
    start = end + 2;
  }
}
