import { createHash, hash } from "node:crypto";
import {
  chmodSync,
  closeSync,
  lstatSync,
  opendirSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  readSync,
} from "node:fs";

export interface HashedFolder {
  readonly digest: string;
  readonly sizeBytes: number;
}

export interface HashedTree extends HashedFolder {
  /** The root's direct entries by name; they can serve as `TreeInput.known` later. */
  readonly entries: ReadonlyMap<string, HashedFolder>;
}

export interface TreeInput {
  readonly root: string;
  /** Folders directly below the root whose digests are known; they are not read again. */
  readonly known: ReadonlyMap<string, HashedFolder>;
  readonly limits: TreeLimits;
}

/** Limits of a tree. Files count at their apparent size, even sparse ones. */
export interface TreeLimits {
  readonly entries: number;
  readonly bytes: number;
}

/** Measures a folder, then returns its digest and those of its direct entries, see `Hashing`. */
export function hashRoot(input: TreeInput): HashedTree {
  measureTree(input);
  // A Map, because an object has keys such as `constructor` from the start.
  const entries = new Map<string, HashedFolder>();
  const child = (name: Buffer, path: Buffer) => {
    const text = name.toString("utf8");
    const hashed = input.known.get(text) ?? hashEntry(path);
    entries.set(text, hashed);
    return hashed;
  };
  return { ...hashFolder(Buffer.from(input.root), child), entries };
}

/** Thrown if a tree exceeds its limits, or contains a path too long for system calls. */
export class TreeTooLarge extends Error {
  readonly what: "entries" | "bytes" | "path";
  readonly limits: TreeLimits;
  constructor(what: TreeTooLarge["what"], limits: TreeLimits) {
    super(`a tree exceeds its limit of ${what}`);
    this.what = what;
    this.limits = limits;
  }
}

/** Measures a tree without reading files; throws `TreeTooLarge` beyond the limits. Clears setuid and setgid bits. */
export function measureTree({ root, known, limits }: TreeInput): void {
  const left = { ...limits };
  const spend = (bytes: number) => {
    left.entries -= 1;
    left.bytes -= bytes;
    if (left.entries < 0) throw new TreeTooLarge("entries", limits);
    if (left.bytes < 0) throw new TreeTooLarge("bytes", limits);
  };
  for (const { sizeBytes } of known.values()) spend(sizeBytes);
  const measure = (path: Buffer, isRoot: boolean) => {
    const stats = lstatSync(path);
    spend(stats.isFile() ? stats.size : 0);
    if (!stats.isSymbolicLink() && stats.mode & 0o7000) chmodSync(path, stats.mode & 0o777);
    if (!stats.isDirectory()) return;
    for (const name of namesIn(path))
      if (!isRoot || !known.has(name.toString("utf8"))) measure(join(path, name), false);
  };
  try {
    measure(Buffer.from(root), true);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENAMETOOLONG") throw new TreeTooLarge("path", limits);
    throw error;
  }
}

/** Yields names one by one, so that a folder with millions of them exceeds its limit before it fills the memory. */
function* namesIn(folder: Buffer): Generator<Buffer> {
  const open = opendirSync(folder as unknown as string, { encoding: "buffer" as BufferEncoding, bufferSize: 256 });
  try {
    for (let entry = open.readSync(); entry !== null; entry = open.readSync()) yield entry.name as unknown as Buffer;
  } finally {
    open.closeSync();
  }
}

const wholeBytes = 8 * 1024 * 1024;
const slash = Buffer.from("/");
const join = (folder: Buffer, name: Buffer): Buffer => Buffer.concat([folder, slash, name]);

// Names are handled as bytes: those from a repository or a build need not be UTF-8.
function hashFolder(folder: Buffer, child: (name: Buffer, path: Buffer) => HashedFolder): HashedFolder {
  const digest = createHash("sha256");
  let sizeBytes = 0;
  for (const name of readdirSync(folder, { encoding: "buffer" }).sort(Buffer.compare)) {
    const hashed = child(name, join(folder, name));
    sizeBytes += hashed.sizeBytes;
    digest.update(`${JSON.stringify(name.toString("latin1"))} ${hashed.digest}\n`);
  }
  return { digest: `d ${digest.digest("hex")}`, sizeBytes };
}

function hashEntry(path: Buffer): HashedFolder {
  const stats = lstatSync(path);
  if (stats.isDirectory()) return hashFolder(path, (_name, below) => hashEntry(below));
  if (stats.isSymbolicLink()) return { digest: `l ${hash("sha256", readlinkSync(path, "buffer"))}`, sizeBytes: 0 };
  if (!stats.isFile()) return { digest: "other", sizeBytes: 0 };
  const content = stats.size <= wholeBytes ? hash("sha256", readFileSync(path)) : hashLarge(path);
  return { digest: `${stats.mode & 0o111 ? "x" : "f"} ${content}`, sizeBytes: stats.size };
}

function hashLarge(path: Buffer): string {
  const digest = createHash("sha256");
  const buffer = Buffer.allocUnsafe(wholeBytes);
  const file = openSync(path, "r");
  try {
    for (let read = readSync(file, buffer); read > 0; read = readSync(file, buffer))
      digest.update(buffer.subarray(0, read));
  } finally {
    closeSync(file);
  }
  return digest.digest("hex");
}
