import { createHash } from "node:crypto";

const [leastBytes, mostBytes] = [256 * 1024, 4 * 1024 * 1024];
// A cut where the upper 20 bits are zero: 1 MiB on average after the least size.
const zeroBits = 20;

/** One random number for each byte. Other numbers would cut the same content elsewhere, so they must never change. */
const gear = Int32Array.from({ length: 256 }, (_, byte) =>
  createHash("sha256").update(`berth piece ${byte}`).digest().readInt32BE(0),
);

/**
 * Cuts a stream into pieces of 256 KiB to 4 MiB at places that depend on the 32 bytes before them, so that equal content makes equal pieces
 * wherever it stands (Xia et al., "FastCDC", USENIX ATC 2016). Holds one piece in memory.
 */
export async function* contentPieces(stream: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let piece = Buffer.allocUnsafe(mostBytes);
  let length = 0;
  let hash = 0;
  for await (const chunk of stream) {
    let from = 0;
    while (from < chunk.length) {
      const room = Math.min(chunk.length - from, mostBytes - length);
      // The bytes before the least size cannot end a piece, except for the 32 that a place depends on.
      let at = Math.max(0, Math.min(room, leastBytes - 32 - length));
      let isEnd = false;
      while (at < room && !isEnd) {
        hash = ((hash << 1) + (gear[chunk[from + at] as number] as number)) | 0;
        at += 1;
        isEnd = length + at >= leastBytes && hash >>> (32 - zeroBits) === 0;
      }
      chunk.copy(piece, length, from, from + at);
      length += at;
      from += at;
      if (!isEnd && length < mostBytes) continue;
      yield piece.subarray(0, length);
      piece = Buffer.allocUnsafe(mostBytes);
      length = 0;
      hash = 0;
    }
  }
  if (length > 0) yield piece.subarray(0, length);
}
