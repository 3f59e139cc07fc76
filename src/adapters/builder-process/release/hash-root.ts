import { createHash, hash } from "node:crypto";
import { closeSync, lstatSync, openSync, readdirSync, readFileSync, readlinkSync, readSync } from "node:fs";

export interface HashedFolder {
  readonly digest: string;
  readonly sizeBytes: number;
}

export interface HashedTree extends HashedFolder {
  /** The folders and files directly below the root, by name; `HashTreeInput.known` of another time. */
  readonly entries: ReadonlyMap<string, HashedFolder>;
}

interface Budget {
  entries: number;
  bytes: number;
}

/** The digest of a folder and of what is directly below it, see `Hashing`. Throws `TooMuch` when it holds more than `atMost`. */
export function hashRoot(
  root: string,
  known: ReadonlyMap<string, HashedFolder>,
  atMost: Readonly<Budget> = { entries: Infinity, bytes: Infinity },
): HashedTree {
  const left = { ...atMost };
  // Maps: an object would know names such as `constructor` that nobody has given it.
  const entries = new Map<string, HashedFolder>();
  const child = (name: Buffer, path: Buffer) => {
    const text = name.toString("utf8");
    const hashed = known.get(text) ?? hashEntry(path, left);
    entries.set(text, hashed);
    return hashed;
  };
  return { ...hashFolder(Buffer.from(root), child), entries };
}

/** More than `atMost` would have had to be read. */
export class TooMuch extends Error {}

const wholeBytes = 8 * 1024 * 1024;
const slash = Buffer.from("/");

// Names are bytes: what a repository or a build makes need not be UTF-8.
function hashFolder(folder: Buffer, child: (name: Buffer, path: Buffer) => HashedFolder): HashedFolder {
  const digest = createHash("sha256");
  let sizeBytes = 0;
  for (const name of readdirSync(folder, { encoding: "buffer" }).sort(Buffer.compare)) {
    const hashed = child(name, Buffer.concat([folder, slash, name]));
    sizeBytes += hashed.sizeBytes;
    digest.update(`${JSON.stringify(name.toString("latin1"))} ${hashed.digest}\n`);
  }
  return { digest: `d ${digest.digest("hex")}`, sizeBytes };
}

function hashEntry(path: Buffer, left: Budget): HashedFolder {
  const stats = lstatSync(path);
  spend(left, stats.isFile() ? stats.size : 0);
  if (stats.isDirectory()) return hashFolder(path, (_name, below) => hashEntry(below, left));
  if (stats.isSymbolicLink()) return { digest: `l ${hash("sha256", readlinkSync(path, "buffer"))}`, sizeBytes: 0 };
  if (!stats.isFile()) return { digest: "other", sizeBytes: 0 };
  const content = stats.size <= wholeBytes ? hash("sha256", readFileSync(path)) : hashLarge(path);
  return { digest: `${stats.mode & 0o111 ? "x" : "f"} ${content}`, sizeBytes: stats.size };
}

function spend(left: Budget, bytes: number): void {
  left.entries -= 1;
  left.bytes -= bytes;
  if (left.entries < 0 || left.bytes < 0) throw new TooMuch();
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
