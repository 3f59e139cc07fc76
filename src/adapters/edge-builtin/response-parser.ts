import { createRequire } from "node:module";

// llhttp, the parser of Node.js and of undici, in undici's build: it can pause in the middle of its input, while Node's own always parses
// to the end. Only the parser is undici's: its client does more for each request than an edge needs (docs/performance.md).
const require = createRequire(import.meta.url);
const program = require("undici/lib/llhttp/llhttp_simd-wasm.js") as Buffer;
const ofResponses = 2;
// Return values of llhttp's callbacks: continue, fail, skip the body, hand over the rest (upgrade), pause here.
const [goOn, fail, withoutBody, handOver, pause] = [0, -1, 1, 2, 21];
// The result of `llhttp_execute` once the other side speaks another protocol.
const upgraded = 22;
// HAProxy allows 101 fields. Checking and writing 5,000 short ones takes the edge 25 ms.
const maxFields = 256;
// Names and values together, trailers included.
const maxFieldBytes = 64 * 1024;

/** Callbacks for what a parser finds. Fields are alternating names and values. */
export interface ParsedResponse {
  /** Returns whether the message has no body. */
  head(status: number, fields: string[], reason: string): boolean;
  /** The receiver may keep the bytes. */
  body(chunk: Buffer): void;
  end(trailers: string[], mayContinue: boolean): void;
  upgrade(fields: string[]): void;
  /** Parsing must pause for now. */
  readonly isPaused: boolean;
  /** Another response may start. */
  readonly isExpected: boolean;
}

/** Parses the responses of one connection. */
export class ResponseParser {
  readonly #at = llhttp.llhttp_alloc(ofResponses);
  readonly #found: ParsedResponse;
  #fields: string[] = [];
  #fieldBytes = 0;
  #reason = "";
  #mayContinue = false;
  #thrown: Error | undefined;

  constructor(found: ParsedResponse) {
    this.#found = found;
  }

  /** Parses the bytes from `from` to `to`, `pieceBytes` at most; returns how many it consumed. Throws if they are not valid HTTP. */
  execute(bytes: Buffer, from: number, to: number): number {
    if (running !== undefined) throw new Error("another answer is being parsed");
    if (memory.buffer !== llhttp.memory.buffer) memory = memoryNow();
    bytes.copy(memory, 0, from, to);
    enter(this);
    [piece, pieceAt] = [bytes, from];
    try {
      const outcome = llhttp.llhttp_execute(this.#at, input, to - from);
      if (outcome === goOn) return to - from;
      if (outcome !== pause && outcome !== upgraded) throw this.#thrown ?? new Error(this.#fault());
      if (outcome === pause) llhttp.llhttp_resume(this.#at);
      return llhttp.llhttp_get_error_pos(this.#at) - input;
    } finally {
      running = undefined;
    }
  }

  /** Signals the end of the connection, which may be the end of a response. */
  finish(): void {
    enter(this);
    const outcome = llhttp.llhttp_finish(this.#at);
    running = undefined;
    if (outcome !== goOn) throw new Error("the connection ended in the middle of the answer");
  }

  /** Frees the parser; no method may be called afterwards. */
  free(): void {
    llhttp.llhttp_free(this.#at);
  }

  /** Records an error to throw later: a callback must return normally, because llhttp is on the stack. */
  refuse(thrown: Error): number {
    this.#thrown = thrown;
    return fail;
  }

  began(): number {
    return this.#found.isExpected ? goOn : fail;
  }

  reason(part: string): number {
    this.#reason += part;
    return goOn;
  }

  name(part: string): number {
    return this.#add(part, 0);
  }

  value(part: string): number {
    return this.#add(part, 1);
  }

  headEnded(status: number, isUpgrade: boolean, mayContinue: boolean): number {
    const [fields, reason] = [this.#takeFields(), this.#reason];
    this.#reason = "";
    this.#mayContinue = mayContinue;
    if (!isUpgrade) return this.#found.head(status, fields, reason) ? withoutBody : goOn;
    this.#found.upgrade(fields);
    return handOver;
  }

  body(chunk: Buffer): number {
    this.#found.body(chunk);
    return this.#found.isPaused ? pause : goOn;
  }

  ended(): number {
    this.#found.end(this.#takeFields(), this.#mayContinue);
    return goOn;
  }

  #takeFields(): string[] {
    const fields = this.#fields;
    this.#fields = [];
    this.#fieldBytes = 0;
    return fields;
  }

  /** A name or value may arrive in several parts. */
  #add(part: string, turn: 0 | 1): number {
    const fields = this.#fields;
    fields.push(fields.length % 2 === turn ? part : (fields.pop() as string) + part);
    this.#fieldBytes += part.length;
    return this.#fieldBytes > maxFieldBytes || fields.length > 2 * maxFields ? fail : goOn;
  }

  #fault(): string {
    const at = llhttp.llhttp_get_error_reason(this.#at);
    const text = Buffer.from(llhttp.memory.buffer, at);
    return at === 0 ? "invalid HTTP" : text.toString("latin1", 0, text.indexOf(0));
  }
}

/** The most bytes that one call of `execute` accepts. */
export const pieceBytes = 16 * 1024;

interface Llhttp {
  readonly memory: { readonly buffer: ArrayBuffer };
  malloc(bytes: number): number;
  llhttp_alloc(type: number): number;
  llhttp_free(parser: number): void;
  llhttp_execute(parser: number, at: number, length: number): number;
  llhttp_finish(parser: number): number;
  llhttp_resume(parser: number): void;
  llhttp_get_error_pos(parser: number): number;
  llhttp_get_error_reason(parser: number): number;
}

let running: ResponseParser | undefined;

function enter(parser: ResponseParser): void {
  running = parser;
}

/** The input being parsed, and the offset where parsing started. */
let piece: Buffer = Buffer.alloc(0);
let pieceAt = 0;

// Node has WebAssembly, but only browsers' types declare it.
const { Module, Instance } = (globalThis as unknown as { WebAssembly: Assembly }).WebAssembly;

interface Assembly {
  readonly Module: new (program: Buffer) => object;
  readonly Instance: new (module: object, imports: { env: Record<string, Callback> }) => { readonly exports: unknown };
}

type Callback = (parser: number, ...about: number[]) => number;

function guarded(find: (parser: ResponseParser, ...about: number[]) => number): Callback {
  return (_at, ...about) => {
    const parser = running as ResponseParser;
    try {
      return find(parser, ...about);
    } catch (error) {
      return parser.refuse(error as Error);
    }
  };
}

const llhttp = new Instance(new Module(program), {
  env: {
    wasm_on_message_begin: guarded((parser) => parser.began()),
    wasm_on_url: () => goOn,
    wasm_on_status: guarded((parser, at = 0, length = 0) => parser.reason(textAt(at, length))),
    wasm_on_header_field: guarded((parser, at = 0, length = 0) => parser.name(textAt(at, length))),
    wasm_on_header_value: guarded((parser, at = 0, length = 0) => parser.value(textAt(at, length))),
    wasm_on_headers_complete: guarded((parser, status = 0, isUpgrade, mayContinue) =>
      parser.headEnded(status, isUpgrade === 1, mayContinue === 1),
    ),
    wasm_on_body: guarded((parser, at = 0, length = 0) => parser.body(copyAt(at, length))),
    wasm_on_message_complete: guarded((parser) => parser.ended()),
  },
}).exports as Llhttp;

/** llhttp's input buffer. All parsers share the memory; when that grows, its address in this process changes. */
const input = llhttp.malloc(pieceBytes);
let memory = memoryNow();

function memoryNow(): Uint8Array {
  return new Uint8Array(llhttp.memory.buffer, input, pieceBytes);
}

function textAt(at: number, length: number): string {
  const from = at - input + pieceAt;
  return piece.toString("latin1", from, from + length);
}

function copyAt(at: number, length: number): Buffer {
  const from = at - input + pieceAt;
  const copy = Buffer.allocUnsafe(length);
  piece.copy(copy, 0, from, from + length);
  return copy;
}
