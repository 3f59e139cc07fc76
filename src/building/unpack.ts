import { Transform, type Readable } from "node:stream";
import { BuildRefused } from "../detection/failures.ts";
import { run } from "../kit/exec.ts";
import type { SourceTree } from "../detection/source-tree.ts";
import type { BuildLog } from "./build-log.ts";
import { scanSource, type ScannedSource } from "./scan-source.ts";

export interface Unpacking {
  readonly source: Readable;
  readonly folder: string;
  readonly maxBytes: number;
  readonly signal: AbortSignal;
  /** The user who will own the files. */
  readonly uid: number;
  /** Whether pointers of Git LFS are deployed as they are. */
  readonly ignoresLfs: boolean;
}

/** Unpacks a tar stream into an empty folder. Refuses one that is too large, drops links that leave the folder; GNU tar does the rest. */
export async function unpack(unpacking: Unpacking): Promise<ScannedSource> {
  const counter = countBytes(unpacking.maxBytes);
  unpacking.source.once("error", (error) => counter.destroy(error));
  const owner = unpacking.uid === process.getuid?.() ? {} : { uid: unpacking.uid, gid: unpacking.uid };
  const result = await run(
    {
      file: "tar",
      args: ["--extract", "--file=-", "--no-same-owner", "--no-same-permissions", "--delay-directory-restore"],
    },
    {
      cwd: unpacking.folder,
      ...owner,
      stdin: unpacking.source.pipe(counter),
      signal: unpacking.signal,
      maxOutputBytes: 16 * 1024,
    },
  );
  unpacking.source.destroy();
  if (counter.isOver()) throw tooLarge(unpacking.maxBytes);
  unpacking.signal.throwIfAborted();
  if (result.exitCode !== 0) {
    const reason = result.stderr.trim().split("\n")[0] ?? "";
    throw new BuildRefused("source_unreadable", { summary: `The source could not be unpacked: ${reason}` });
  }
  const scanned = await scanSource(unpacking.folder, unpacking.signal);
  if (scanned.sizeBytes > unpacking.maxBytes) throw tooLarge(unpacking.maxBytes);
  const [pointer, ...others] = unpacking.ignoresLfs ? [] : scanned.lfsPointers;
  if (pointer !== undefined)
    throw new BuildRefused("lfs_not_fetched", { summary: pointersOnly(pointer, others.length) });
  return scanned;
}

function pointersOnly(path: string, others: number): string {
  const files = others === 0 ? `${path} is` : `${path} and ${others} other file${others === 1 ? " are" : "s are"}`;
  return `${files} in Git LFS: the push has only pointers of some 130 bytes, not the content.`;
}

export async function unpackSource(unpacking: Unpacking, log: BuildLog): Promise<SourceTree> {
  const { tree, droppedLinks } = await unpack(unpacking);
  if (droppedLinks.length > 0) {
    log.step("Dropped symbolic links that point outside of the repository");
    for (const path of droppedLinks) log.detail(path);
  }
  return tree;
}

function tooLarge(maxBytes: number): BuildRefused {
  return new BuildRefused("source_too_large", {
    summary: `The source is larger than ${Math.round(maxBytes / 1024 / 1024)} MiB.`,
  });
}

function countBytes(maxBytes: number) {
  // In a tar stream each file also has a header of 512 bytes.
  let left = maxBytes * 1.5;
  let over = false;
  const counter = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      left -= chunk.length;
      over = left < 0;
      done(over ? new Error("too large") : null, chunk);
    },
  });
  return Object.assign(counter, { isOver: () => over });
}
