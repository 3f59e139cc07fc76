import { Socket, type SocketConstructorOpts } from "node:net";

// How long a replica's response may still arrive after it has stopped reading the request.
const readAfterWriteErrorMs = 500;
// Node reads into this buffer for all sockets in turn: allocating memory for each read would cost more than the rest of the read.
const shared = Buffer.alloc(64 * 1024);

/**
 * A socket that still reads after a write has failed. A replica that refuses a body responds and closes, which resets the connection; Node
 * would destroy the socket on the failed write, with the response unread in the kernel.
 */
export class UpstreamSocket extends Socket {
  #writeFailed = false;

  /** `received` gets the bytes at the start of `bytes`, which are valid only during the call. Only a stream can be piped later. */
  constructor(received: (bytes: Buffer, count?: number) => void, isStream: boolean) {
    const callback = (count: number) => (received(shared, count), true);
    super(isStream ? {} : ({ onread: { buffer: shared, callback } } as SocketConstructorOpts));
    if (isStream) this.on("data", received);
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
