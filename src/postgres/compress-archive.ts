import type { Readable } from "node:stream";
import { constants, createZstdCompress } from "node:zlib";
import { pipeline } from "node:stream/promises";

const level = 3;
// A pipe delivers 64 KiB at a time; compressing such pieces one by one takes twice as long as large ones (measured).
const chunkSize = 1024 * 1024;
// A buffer for several pieces, so that pg_dump continues while one piece is compressed and another is written.
const highWaterMark = 8 * chunkSize;

/** Compresses in this process, for machines without zstd. An error of any stage reaches the reader of the returned stream. */
export function compressArchive(archive: AsyncIterable<Buffer>): Readable {
  const compress = createZstdCompress({
    ...{ chunkSize, highWaterMark },
    params: { [constants.ZSTD_c_compressionLevel]: level },
  });
  pipeline(archive, gathered, compress).catch(() => {});
  return compress;
}

/** Joins the chunks into larger ones. */
async function* gathered(source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let pieces: Buffer[] = [];
  let size = 0;
  for await (const piece of source) {
    pieces.push(piece);
    size += piece.length;
    if (size < chunkSize) continue;
    yield Buffer.concat(pieces, size);
    pieces = [];
    size = 0;
  }
  if (size > 0) yield Buffer.concat(pieces, size);
}
