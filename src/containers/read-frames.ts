import type { IncomingMessage } from "node:http";

/** The engine sends what a container wrote in frames: a byte for the stream, three empty ones, the length in four, and the bytes. */
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
