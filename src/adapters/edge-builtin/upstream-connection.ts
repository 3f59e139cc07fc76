import type { Socket } from "node:net";
import type { BodyReceiver, BodySource } from "./body-relay.ts";
import { pieceBytes, ResponseParser, type ParsedResponse } from "./response-parser.ts";
import { UpstreamSocket } from "./upstream-socket.ts";

// For one response, including interim ones; HAProxy allows 16 KiB.
const maxHeadBytes = 32 * 1024;
// More interim responses (1xx) than this are an attack on the edge's processor time.
const maxInterimResponses = 64;
// Servers that do not announce a timeout close idle connections after 5 s (Node, uvicorn) or 2 s (gunicorn); others announce whole seconds.
const usualIdleMs = 1900;
const hintMarginMs = 1000;
const maxIdleMs = 60_000;

/** A request as sent to a replica. */
export interface UpstreamRequest {
  readonly method: string;
  readonly path: string;
  /** Header lines, each with its line end. They include the length of a body that has one. */
  readonly fields: string;
  readonly body: "none" | "sized" | "chunked";
  /** The protocol that the client wants to upgrade to. */
  readonly upgrade?: string;
}

/** Receives the response to one request. Fields are alternating names and values. */
export interface AnswerReceiver {
  answerBegan(status: number, fields: string[], reason: string): void;
  answerCame(chunk: Buffer): void;
  answerEnded(trailers: string[]): void;
  /** The response failed and the connection is closed. */
  answerFailed(error: Error): void;
  /** The replica has switched to the other protocol. */
  upgraded?(fields: string[], replica: Socket): void;
}

/** One connection to a replica, for one request at a time; the source of its responses' bodies. */
export class UpstreamConnection implements BodySource, BodyReceiver, ParsedResponse {
  readonly socket: UpstreamSocket;
  /** The connection has carried a request before; only then can the replica have closed it as idle. */
  reused = false;
  idleSinceMs = 0;
  /** How long the replica keeps the connection after its last response. */
  keptIdleMs = usualIdleMs;
  /** No byte of the current response has arrived. */
  isUnanswered = true;
  isPaused = false;
  readonly #received = (bytes: Buffer, count = bytes.length): void => this.#read(bytes, count);
  readonly #parser = new ResponseParser(this);
  #request: UpstreamRequest | undefined;
  #receiver: AnswerReceiver | undefined;
  #isSending = false;
  #isParsing = false;
  #isHeadOver = false;
  #headBytes = 0;
  #interim = 0;
  /** Input that waits because the connection is paused. */
  #unparsed: Buffer | undefined;
  #handOver: ((rest: Buffer) => void) | undefined;
  #fault = new Error("the connection was closed");

  /** `isStream` is true if the request is for an upgrade. */
  constructor(isStream: boolean) {
    this.socket = new UpstreamSocket(this.#received, isStream);
    this.socket.on("error", (error) => void (this.#fault = error));
    this.socket.on("end", () => this.#ended());
    this.socket.on("close", () => {
      this.#parser.free();
      this.#fail(this.#fault);
    });
  }

  /** Sends a request; the response goes to `receiver`. `write` and `endBody` send the request's body. */
  send(request: UpstreamRequest, receiver: AnswerReceiver): void {
    const { method, path, fields, body, upgrade } = request;
    this.#request = request;
    this.#receiver = receiver;
    this.#isSending = body !== "none";
    this.#isHeadOver = false;
    this.#headBytes = this.#interim = 0;
    this.isUnanswered = true;
    // Some servers send a body in response to HEAD.
    const connection = method === "HEAD" ? "close" : "keep-alive";
    const about = upgrade === undefined ? `connection: ${connection}` : `connection: upgrade\r\nupgrade: ${upgrade}`;
    const framing = body === "chunked" ? "transfer-encoding: chunked\r\n" : "";
    this.socket.write(`${method} ${path} HTTP/1.1\r\n${fields}${about}\r\n${framing}\r\n`, "latin1");
  }

  write(bytes: Buffer): boolean {
    if (this.#request?.body !== "chunked") return this.socket.write(bytes);
    this.socket.cork();
    this.socket.write(`${bytes.length.toString(16)}\r\n`, "latin1");
    this.socket.write(bytes);
    const takesMore = this.socket.write("\r\n", "latin1");
    this.socket.uncork();
    return takesMore;
  }

  once(event: "drain", listener: () => void): void {
    this.socket.once(event, listener);
  }

  endBody(rest: Buffer | undefined): void {
    this.#isSending = false;
    if (rest !== undefined) this.write(rest);
    if (this.#request?.body === "chunked") this.socket.write("0\r\n\r\n", "latin1");
  }

  pause(): void {
    this.isPaused = true;
    this.socket.pause();
  }

  resume(): void {
    this.isPaused = false;
    if (this.#isParsing) return;
    const unparsed = this.#unparsed;
    this.#unparsed = undefined;
    if (unparsed !== undefined) this.#parse(unparsed, unparsed.length);
    if (!this.isPaused) this.socket.resume();
  }

  /** Abandons the current request without notifying its receiver. */
  close(): void {
    this.#receiver = undefined;
    this.socket.destroy();
  }

  get isExpected(): boolean {
    return this.#receiver !== undefined;
  }

  head(status: number, fields: string[], reason: string): boolean {
    if (status < 200) {
      this.#interim += 1;
      if (this.#interim > maxInterimResponses) throw new Error("too many interim responses");
      return true;
    }
    this.#isHeadOver = true;
    this.keptIdleMs = keptIdleMs(fields);
    this.#receiver?.answerBegan(status, fields, reason);
    return this.#request?.method === "HEAD" || status === 204 || status === 304;
  }

  body(chunk: Buffer): void {
    this.#receiver?.answerCame(chunk);
  }

  end(trailers: string[], mayContinue: boolean): void {
    const receiver = this.#receiver;
    if (receiver === undefined || !this.#isHeadOver) return;
    this.#receiver = undefined;
    receiver.answerEnded(trailers);
    const isKept = mayContinue && !this.#isSending && this.#request?.method !== "HEAD" && this.keptIdleMs > 0;
    if (!isKept) this.socket.destroy();
  }

  upgrade(fields: string[]): void {
    const receiver = this.#receiver;
    if (receiver?.upgraded === undefined) throw new Error("an upgrade that was not requested");
    this.#receiver = undefined;
    this.#handOver = (rest) => {
      this.socket.off("data", this.#received);
      if (rest.length > 0) this.socket.unshift(rest);
      receiver.upgraded?.(fields, this.socket);
    };
  }

  #read(bytes: Buffer, count: number): void {
    this.isUnanswered = false;
    if (this.#unparsed === undefined) return this.#parse(bytes, count);
    this.#unparsed = Buffer.concat([this.#unparsed, bytes.subarray(0, count)]);
  }

  #parse(bytes: Buffer, count: number): void {
    let at = 0;
    this.#isParsing = true;
    try {
      while (at < count && !this.isPaused && !this.socket.destroyed && this.#handOver === undefined)
        at += this.#parsePiece(bytes, at, Math.min(count, at + pieceBytes));
    } catch (error) {
      this.#fail(error as Error);
    }
    this.#isParsing = false;
    // Copy the rest: the next read overwrites the shared buffer.
    if (this.isPaused && at < count) this.#unparsed = Buffer.from(bytes.subarray(at, count));
    this.#handOver?.(Buffer.from(bytes.subarray(at, count)));
  }

  #parsePiece(bytes: Buffer, from: number, to: number): number {
    if (!this.#isHeadOver) this.#headBytes += to - from;
    if (this.#headBytes > maxHeadBytes) throw new Error("its head is longer than 32 KiB");
    return this.#parser.execute(bytes, from, to);
  }

  /** A response without a length ends when its connection closes. */
  #ended(): void {
    if (this.#handOver !== undefined) return;
    try {
      if (this.#receiver !== undefined) this.#parser.finish();
      this.#fail(this.#fault);
    } catch (error) {
      this.#fail(error as Error);
    }
  }

  #fail(error: Error): void {
    const receiver = this.#receiver;
    this.close();
    receiver?.answerFailed(error);
  }
}

/** Returns how long the replica keeps the connection, according to the response's fields. */
function keptIdleMs(fields: readonly string[]): number {
  for (let i = 0; i < fields.length; i += 2) {
    const name = fields[i] as string;
    if (name.length !== 10 || name.toLowerCase() !== "keep-alive") continue;
    const seconds = /timeout=(\d+)/i.exec(fields[i + 1] as string)?.[1];
    if (seconds !== undefined) return Math.min(Number(seconds) * 1000 - hintMarginMs, maxIdleMs);
  }
  return usualIdleMs;
}
