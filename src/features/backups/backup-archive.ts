import { createHash } from "node:crypto";
import { once } from "node:events";
import { Transform, type Readable, type TransformOptions } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createZstdDecompress, type ZstdOptions } from "node:zlib";
import { ArchiveDamaged, StorageMissing, type Storage } from "../../ports/storage.ts";

/** A backup's file: a pg_dump archive, compressed with zstd. */
export interface ArchiveFile {
  readonly storage: Storage;
  readonly key: string;
  readonly sha256: string;
  readonly signal: AbortSignal;
  /** Called with the number of bytes processed so far. */
  readonly onBytes: (bytes: number) => void;
}

const chunkSize = 1024 * 1024;
// Buffers several chunks, so that one is decompressed while another is read.
const roomy: ZstdOptions & TransformOptions = { chunkSize, highWaterMark: 8 * chunkSize };
/** The first bytes of every pg_dump archive in the custom format. */
const magic = "PGDMP";

/** Stores a compressed archive; resolves with its size and checksum once the file is durable. */
export async function packArchive(
  archive: Readable,
  file: Omit<ArchiveFile, "sha256">,
): Promise<{ size_bytes: number; sha256: string }> {
  const { tap, digest } = hashing(file.onBytes);
  const flowing = pipeline(archive, tap);
  // `flowing` and `put` fail together with the same error; it is reported by `put`.
  flowing.catch(() => {});
  const { size_bytes } = await file.storage.put(file.key, tap, file.signal);
  await flowing;
  return { size_bytes, sha256: digest() };
}

/** Reads the whole file and throws `ArchiveDamaged` unless its checksum matches and it contains a pg_dump archive. Read-only. */
export async function checkArchive(file: ArchiveFile): Promise<void> {
  const source = await openStored(file);
  const sum = createHash("sha256");
  const inside = looker();
  let bytes = 0;
  for await (const chunk of source as AsyncIterable<Buffer>) {
    file.signal.throwIfAborted();
    sum.update(chunk);
    bytes += chunk.length;
    file.onBytes(bytes);
    await inside.look(chunk);
  }
  if (sum.digest("hex") !== file.sha256)
    throw new ArchiveDamaged("The backup's file is damaged: its checksum differs from the stored one.");
  await inside.end();
}

/** Returns the decompressed archive for pg_restore. The stream fails with `ArchiveDamaged` when the file differs from what was stored. */
export async function unpackArchive(file: ArchiveFile): Promise<Readable> {
  const unpacked = createZstdDecompress(roomy);
  const compressed = await openChecked(file);
  // An error in any part of the pipeline reaches the reader of `unpacked`.
  pipeline(compressed, unpacked).catch(() => {});
  return unpacked;
}

/** Returns a stored file as it is. The stream fails with `ArchiveDamaged` when it differs from what was stored. */
export async function openChecked(file: ArchiveFile): Promise<Readable> {
  const source = await openStored(file);
  const { tap } = hashing(file.onBytes, file.sha256);
  pipeline(source, tap).catch(() => {});
  return tap;
}

/** Opens a stored file. Rejects with `ArchiveDamaged` when it is missing. */
export async function openStored({
  storage,
  key,
  signal,
}: Pick<ArchiveFile, "storage" | "key" | "signal">): Promise<Readable> {
  try {
    return await storage.open(key, signal);
  } catch (error) {
    if (error instanceof StorageMissing) throw new ArchiveDamaged("The backup's file is missing.", error);
    throw error;
  }
}

/** Resolves with what is read of the first that can be; undefined if none can. Passes over those whose failure may be passed over. */
export async function firstReadable<Candidate, Read>(
  candidates: readonly Candidate[],
  read: (candidate: Candidate) => Promise<Read>,
  mayPass: (error: Error, candidate: Candidate) => boolean | Promise<boolean>,
): Promise<Read | undefined> {
  for (const candidate of candidates)
    try {
      return await read(candidate);
    } catch (error) {
      if (!(await mayPass(error as Error, candidate))) throw error;
    }
  return undefined;
}

/** Decompresses the chunks of a file and checks the archive's magic bytes. A bad chunk does not interrupt the reader; `end` reports it. */
function looker() {
  const unpacked = createZstdDecompress(roomy);
  let first = Buffer.alloc(0);
  let fault: unknown;
  let goOn = () => {};
  unpacked.on("drain", () => goOn());
  unpacked.on("error", (error) => {
    fault = error;
    goOn();
  });
  unpacked.on("data", (chunk: Buffer) => {
    if (first.length < magic.length) first = Buffer.concat([first, chunk.subarray(0, magic.length)]);
  });
  return {
    async look(chunk: Buffer): Promise<void> {
      if (fault !== undefined || unpacked.write(chunk)) return;
      await new Promise<void>((resolve) => (goOn = resolve));
    },
    async end(): Promise<void> {
      if (fault === undefined) {
        unpacked.end();
        await once(unpacked, "end").catch((error: unknown) => (fault = error));
      }
      if (fault !== undefined) throw new ArchiveDamaged("The backup's file cannot be unpacked.", fault);
      if (first.subarray(0, magic.length).toString("latin1") !== magic)
        throw new ArchiveDamaged("The backup's file does not contain a database archive.");
    },
  };
}

function hashing(onBytes: (bytes: number) => void, expected?: string) {
  const sum = createHash("sha256");
  let bytes = 0;
  let digest = "";
  const tap = new Transform({
    highWaterMark: 2 * chunkSize,
    transform(chunk: Buffer, _, done) {
      sum.update(chunk);
      bytes += chunk.length;
      onBytes(bytes);
      done(null, chunk);
    },
    flush(done) {
      digest = sum.digest("hex");
      if (expected === undefined || digest === expected) return done();
      done(new ArchiveDamaged("The backup's file changed while Berth read it."));
    },
  });
  return { tap, digest: () => digest };
}
