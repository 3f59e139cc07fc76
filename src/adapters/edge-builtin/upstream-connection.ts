import { createRequire } from "node:module";
import { Socket, type SocketConstructorOpts } from "node:net";
import type { buildConnector, Client } from "undici";

// Not the whole package, of which the rest would take 13 MB.
const UndiciClient = createRequire(import.meta.url)("undici/lib/dispatcher/client.js") as typeof Client;
// How long a replica's answer may still arrive after it has stopped reading the request.
const readAfterWriteErrorMs = 500;
const pieceBytes = 16 * 1024;
// Of an answer, interim ones included; HAProxy allows 16 KiB. undici's own limit counts names and values only, of trailers too.
const maxHeadBytes = 2 * pieceBytes;
// Servers without a hint close idle connections after 5 s (Node, uvicorn) or 2 s (gunicorn); those with one name whole seconds.
const keepAlive = { keepAliveTimeout: 1900, keepAliveTimeoutThreshold: 1000, keepAliveMaxTimeout: 60_000 };
const limits = { maxHeaderSize: 2 * maxHeadBytes, headersTimeout: 0, bodyTimeout: 0, pipelining: 1 };

/** One connection to a replica, for one request at a time. undici writes and reads HTTP on it and closes it when it has been idle for long. */
export class UpstreamConnection {
  readonly socket: UpstreamSocket;
  readonly client: Client;
  /** Has carried a request before: only then can the replica have closed it because it was idle. */
  reused = false;
  idleSinceMs = 0;

  constructor(origin: string, socket: UpstreamSocket) {
    this.socket = socket;
    const connect: buildConnector.connector = (_options, done) =>
      // undici expects the outcome later. Another connection is the target's to open: it may go to another replica.
      queueMicrotask(() => (socket.destroyed ? done(new Error("closed"), null) : done(null, socket)));
    this.client = new UndiciClient(origin, { ...limits, ...keepAlive, connect });
  }
}

/** Makes undici load its parser. It would do so with the first connection, when this process may no longer read its own program. */
export async function loadParser(): Promise<void> {
  const socket = new UpstreamSocket();
  socket.on("error", () => {});
  const { client } = new UpstreamConnection("http://localhost", socket);
  await new Promise<void>((resolve, reject) => {
    const handler = { onRequestStart: () => resolve(), onResponseError: (_: unknown, error: Error) => reject(error) };
    client.dispatch(
      { method: "GET", path: "/" },
      { onResponseStart() {}, onResponseData() {}, onResponseEnd() {}, ...handler },
    );
  });
  socket.destroy();
}

/**
 * A socket that still reads after a write has failed. A replica that refuses a body answers, closes and thereby resets the connection: Node
 * would destroy the socket on the failed write, with the answer unread in the kernel.
 */
export class UpstreamSocket extends Socket {
  #writeFailed = false;
  #headBytesLeft = Number.POSITIVE_INFINITY;

  constructor() {
    super({ highWaterMark: pieceBytes } as SocketConstructorOpts);
  }

  /** In small pieces: undici puts back what it leaves unread when it is paused, and all that waits would be copied together again. */
  override read(size?: number): unknown {
    const piece = super.read(size ?? (Math.min(this.readableLength, pieceBytes) || undefined)) as Buffer | null;
    this.#headBytesLeft -= piece?.length ?? 0;
    if (this.#headBytesLeft >= 0) return piece;
    this.destroy(new Error("its head is longer than 32 KiB"));
    return null;
  }

  /** undici makes an error for each further field of a piece in which fields were too many. Their stacks would take half a second. */
  override destroy(error?: Error): this {
    if (error?.name === "HeadersOverflowError" && !this.destroyed) {
      const { stackTraceLimit } = Error;
      Error.stackTraceLimit = 0;
      queueMicrotask(() => (Error.stackTraceLimit = stackTraceLimit));
    }
    return super.destroy(error);
  }

  /** From a request on, until `endHead`, what is read is the head of its answer. */
  beginHead(): void {
    this.#headBytesLeft = maxHeadBytes;
  }

  endHead(): void {
    this.#headBytesLeft = Number.POSITIVE_INFINITY;
  }

  override _write(chunk: unknown, encoding: BufferEncoding, done: WriteDone): void {
    super._write(chunk, encoding, (error) => this.#afterWrite(error, done));
  }

  override _writev(chunks: { chunk: unknown; encoding: BufferEncoding }[], done: WriteDone): void {
    super._writev?.(chunks, (error) => this.#afterWrite(error, done));
  }

  #afterWrite(error: Error | null | undefined, done: WriteDone): void {
    if (error && !this.#writeFailed) {
      this.#writeFailed = true;
      setTimeout(() => this.destroy(error), readAfterWriteErrorMs).unref();
    }
    done();
  }
}

type WriteDone = (error?: Error | null) => void;
