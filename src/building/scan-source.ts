import { createHash } from "node:crypto";
import { constants } from "node:fs";
import { lstat, open, readdir, readlink, unlink, type FileHandle } from "node:fs/promises";
import { isAbsolute } from "node:path";
import { lockBeginningBytes, makeTree, readingOf, type LockFile } from "../detection/source-tree.ts";

export type ScannedSource = Awaited<ReturnType<typeof scanSource>>;

/** Walks the source once without following links, and removes links that could leave it. */
export async function scanSource(root: string, signal?: AbortSignal) {
  const found: Found = { paths: [], deciding: [], sizeBytes: 0, droppedLinks: [], lfsPointers: [] };
  await walk(Buffer.from(root), "", found, signal);
  const { deciding, sizeBytes } = found;
  const tree = makeTree(found.paths.sort(), await readTexts(deciding), await readLocks(deciding));
  return {
    tree,
    sizeBytes,
    /** Links that were removed because they were absolute or could leave the root. */
    droppedLinks: found.droppedLinks.sort(),
    /** Files that hold only Git LFS's pointer to their content. */
    lfsPointers: found.lfsPointers.sort(),
  };
}

/** A file in the source. Its name on disk is bytes, which need not be UTF-8. */
interface FoundFile {
  readonly path: string;
  readonly file: Buffer;
  readonly sizeBytes: number;
}

interface Found {
  readonly paths: string[];
  readonly deciding: FoundFile[];
  readonly droppedLinks: string[];
  readonly lfsPointers: string[];
  sizeBytes: number;
}

const slash = Buffer.from("/");

// File names are bytes, which need not be UTF-8; decoded to text they are only compared with UTF-8 names.
async function walk(place: Buffer, folder: string, found: Found, signal?: AbortSignal): Promise<void> {
  signal?.throwIfAborted();
  for (const entry of await readdir(place, { withFileTypes: true, encoding: "buffer" })) {
    const file = Buffer.concat([place, slash, entry.name]);
    const name = entry.name.toString("utf8");
    const path = folder === "" ? name : `${folder}/${name}`;
    if (entry.isDirectory()) await walk(file, path, found, signal);
    else if (entry.isSymbolicLink()) await noteLink(file, path, found);
    else await noteFile(file, path, found);
  }
}

async function noteLink(file: Buffer, path: string, found: Found): Promise<void> {
  if (!leavesRoot(path, await readlink(file))) return void found.paths.push(path);
  await unlink(file);
  found.droppedLinks.push(path);
}

/** Returns whether following the link may leave the root. `..` counts only at the start: after a name, which may be a link, it may lead anywhere. */
function leavesRoot(path: string, target: string): boolean {
  if (isAbsolute(target)) return true;
  const parts = target.split("/").filter((part) => part !== "" && part !== ".");
  const firstName = parts.findIndex((part) => part !== "..");
  const climbs = firstName < 0 ? parts.length : firstName;
  return climbs > path.split("/").length - 1 || parts.lastIndexOf("..") >= climbs;
}

async function noteFile(file: Buffer, path: string, found: Found): Promise<void> {
  const { size } = await lstat(file);
  found.sizeBytes += size;
  found.paths.push(path);
  if (size >= pointerBytes.least && size <= pointerBytes.most && (await withFile(file, isLfsPointer)))
    found.lfsPointers.push(path);
  if (readingOf(path) !== null) found.deciding.push({ path, file, sizeBytes: size });
}

// A pointer is the version line, a SHA-256 and the size, and rarely a line for each extension.
const pointerBytes = { least: 100, most: 512 };
const pointerStart = "version https://git-lfs.github.com/spec/v1\n";

async function isLfsPointer(handle: FileHandle): Promise<boolean> {
  const { buffer } = await handle.read(Buffer.alloc(pointerStart.length), 0, pointerStart.length, 0);
  return buffer.toString("latin1") === pointerStart;
}

// Manifests are written by hand and small; pip's hashes make requirements files longer. All texts stay in memory during the build, and
// detection searches them on the main thread.
const largestBytes = { manifest: 256 * 1024, requirements: 1024 * 1024, lock: 16 * 1024 * 1024 };
const allTextsBytes = 8 * 1024 * 1024;

/** Reads the texts of manifests, those nearest to the root first, up to a total limit. */
async function readTexts(files: readonly FoundFile[]): Promise<Map<string, string>> {
  const wanted = files.filter((file) => readingOf(file.path) !== "lock" && isReadable(file));
  const texts = new Map<string, string>();
  let leftBytes = allTextsBytes;
  for (const { path, file, sizeBytes } of wanted.toSorted(byDepth)) {
    leftBytes -= sizeBytes;
    if (leftBytes < 0) break;
    texts.set(path, await withFile(file, (handle) => handle.readFile("utf8")));
  }
  return texts;
}

/** Reads the digest and the start of lock files and of package managers' settings. */
async function readLocks(files: readonly FoundFile[]): Promise<Map<string, LockFile>> {
  const found = new Map<string, LockFile>();
  for (const file of files) {
    if (readingOf(file.path) === "lock" && isReadable(file)) found.set(file.path, await withFile(file.file, readLock));
  }
  return found;
}

function isReadable({ path, sizeBytes }: FoundFile): boolean {
  const reading = readingOf(path);
  return reading !== null && sizeBytes <= largestBytes[reading];
}

function byDepth(a: FoundFile, b: FoundFile): number {
  const depth = ({ path }: FoundFile) => path.split("/").length;
  return depth(a) - depth(b) || (a.path < b.path ? -1 : 1);
}

async function readLock(handle: FileHandle): Promise<LockFile> {
  const digest = createHash("sha256");
  let beginning: string | null = null;
  for await (const chunk of handle.createReadStream({ autoClose: false }) as AsyncIterable<Buffer>) {
    beginning ??= chunk.toString("utf8", 0, lockBeginningBytes);
    digest.update(chunk);
  }
  return { digest: digest.digest("hex"), beginning: beginning ?? "" };
}

async function withFile<T>(file: Buffer, read: (handle: FileHandle) => Promise<T>): Promise<T> {
  const handle = await open(file, constants.O_RDONLY | constants.O_NOFOLLOW);
  try {
    return await read(handle);
  } finally {
    await handle.close();
  }
}
