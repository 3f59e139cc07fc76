import type { Readable } from "node:stream";
import { constants, createZstdCompress } from "node:zlib";
import { pipeline } from "node:stream/promises";

const level = 3;
// Measured: a pipe brings 64 KiB at a time, and compressing such pieces one by one costs twice the time of large ones.
const chunkSize = 1024 * 1024;
// Room for several pieces, so that pg_dump goes on while one is compressed and another is written.
const highWaterMark = 8 * chunkSize;

/** Compresses within this process, for machines without the program. Whoever reads the end of the pipe gets the error of any part of it. */
export function compressArchive(archive: AsyncIterable<Buffer>): Readable {
  const compress = createZstdCompress({
    ...{ chunkSize, highWaterMark },
    params: { [constants.ZSTD_c_compressionLevel]: level },
  });
  pipeline(archive, gathered, compress).catch(() => {});
  return compress;
}

/** The same bytes in larger pieces. */
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
