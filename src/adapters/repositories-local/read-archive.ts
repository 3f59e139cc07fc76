import { once } from "node:events";
import { pipeline, Readable } from "node:stream";
import { createGunzip } from "node:zlib";
import { Parser, type ReadEntry } from "tar";
import { requireInside, SourceRefused, sourcePath } from "./source-path.ts";

export interface ArchivedFile {
  readonly path: string;
  readonly mode: "100644" | "100755" | "120000";
  readonly sizeBytes: number;
  readonly content: AsyncIterable<Uint8Array>;
}

/** Receives an archive's contents: its files one after the other, and hard links to earlier files. */
export interface ArchiveReader {
  file(file: ArchivedFile): Promise<void>;
  hardLink(path: string, target: string): void;
}

export interface ArchiveLimits {
  readonly archiveBytes: number;
  readonly bytes: number;
  readonly entries: number;
}

const mib = (bytes: number) => `${Math.floor(bytes / 1024 / 1024)} MiB`;

/** Reads a tar archive, gzipped or not. Throws `SourceRefused` if it is none, is too large, or has anything but files, folders and links. */
export async function readArchive(
  source: AsyncIterable<Uint8Array>,
  limits: ArchiveLimits,
  reader: ArchiveReader,
): Promise<void> {
  const parser = new Parser({ strict: true });
  const failure = Promise.withResolvers<never>();
  failure.promise.catch(() => {});
  let previous = Promise.resolve();
  let entries = 0;
  parser.on("error", ({ message }: Error) =>
    failure.reject(new SourceRefused("invalid", `This is not a readable tar archive: ${message}`)),
  );
  parser.on("entry", (entry: ReadEntry) => {
    entries += 1;
    if (entries > limits.entries)
      failure.reject(new SourceRefused("too_large", `The archive has more than ${limits.entries} files and folders.`));
    previous = previous.then(() => readEntry(entry, reader)).finally(() => entry.resume());
    previous.catch(failure.reject);
  });
  const orFailure = <T>(step: Promise<T>) => Promise.race([step, failure.promise]);
  for await (const chunk of unpacked(source, limits)) {
    if (!parser.write(chunk)) await orFailure(once(parser, "drain"));
  }
  const ended = once(parser, "end");
  parser.end();
  await orFailure(ended);
  await orFailure(previous);
}

async function readEntry(entry: ReadEntry, reader: ArchiveReader): Promise<void> {
  const { type, path: given, linkpath = "", mode = 0, size } = entry;
  switch (type) {
    case "Directory":
    case "GNUDumpDir":
      return;
    case "File":
    case "OldFile":
    case "ContiguousFile": {
      const path = sourcePath(given);
      const executable = (mode & 0o100) !== 0;
      return reader.file({ path, mode: executable ? "100755" : "100644", sizeBytes: size, content: entry });
    }
    case "SymbolicLink": {
      const path = sourcePath(given);
      requireInside(path, linkpath);
      const target = Buffer.from(linkpath);
      return reader.file({ path, mode: "120000", sizeBytes: target.length, content: Readable.from([target]) });
    }
    case "Link":
      return reader.hardLink(sourcePath(given), sourcePath(linkpath));
    default:
      throw new SourceRefused("invalid", `${JSON.stringify(given.slice(0, 200))} is not a file, folder or link.`);
  }
}

const gzipMagic = Buffer.from([0x1f, 0x8b]);

/** Yields the archive's bytes, decompressed. Counts them before and after decompression. */
async function* unpacked(source: AsyncIterable<Uint8Array>, limits: ArchiveLimits): AsyncIterable<Buffer> {
  const raw = bounded(source, limits.archiveBytes, `The archive is larger than ${mib(limits.archiveBytes)}.`);
  const first = await raw.next();
  if (first.done === true)
    throw new SourceRefused("invalid", "The request has no archive: send a tar archive as its body.");
  const whole = (async function* () {
    yield first.value;
    yield* raw;
  })();
  const isZipped = first.value.subarray(0, 2).equals(gzipMagic);
  // Allow for tar's header of 512 bytes per file.
  const most = limits.bytes + limits.entries * 1024;
  const plain = isZipped ? unzipped(whole) : whole;
  yield* bounded(plain, most, `The source unpacks to more than ${mib(limits.bytes)}.`);
}

async function* unzipped(source: AsyncIterable<Buffer>): AsyncIterable<Buffer> {
  const gunzip = createGunzip();
  pipeline(Readable.from(source, { objectMode: false }), gunzip, () => {});
  try {
    yield* gunzip as AsyncIterable<Buffer>;
  } catch (error) {
    const isDamaged = String((error as NodeJS.ErrnoException).code).startsWith("Z_");
    throw isDamaged ? new SourceRefused("invalid", "The gzip archive is damaged or incomplete.") : error;
  }
}

async function* bounded(
  source: AsyncIterable<Uint8Array>,
  most: number,
  summary: string,
): AsyncGenerator<Buffer, void> {
  let left = most;
  for await (const chunk of source) {
    left -= chunk.length;
    if (left < 0) throw new SourceRefused("too_large", summary);
    if (chunk.length > 0) yield Buffer.from(chunk.buffer, chunk.byteOffset, chunk.length);
  }
}
