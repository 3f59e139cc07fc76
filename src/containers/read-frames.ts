import type { IncomingMessage } from "node:http";

/** Decodes the engine's output frames: one byte for the stream, three zero bytes, a 4-byte length and the payload. */
export async function readFrames(output: IncomingMessage, onChunk: (chunk: Buffer) => void): Promise<void> {
  let pending = Buffer.alloc(0);
  for await (const part of output as AsyncIterable<Buffer>) {
    pending = Buffer.concat([pending, part]);
    while (pending.length >= headBytes) {
      const end = headBytes + pending.readUInt32BE(4);
      if (pending.length < end) break;
      onChunk(pending.subarray(headBytes, end));
      pending = pending.subarray(end);
    }
  }
}

const headBytes = 8;
