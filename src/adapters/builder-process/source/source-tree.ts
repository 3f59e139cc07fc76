import { lstat, readdir, readlink } from "node:fs/promises";
import { isAbsolute } from "node:path";
import { isDeciding, locksOf, readLocks, readTexts, type FoundFile, type LockFile } from "./deciding-files.ts";

/** The unpacked source, as detection sees it: paths relative to the root, and the text of the few files that decide. */
export interface SourceTree {
  /** All files (not folders), sorted. */
  readonly paths: readonly string[];
  has(path: string): boolean;
  /** The text of a deciding file, or null when it is missing, a link, or too large to be looked into. */
  text(path: string): string | null;
  /** What is known of a lock file or of a package manager's settings; null likewise. */
  lock(path: string): LockFile | null;
}

export interface ScannedSource {
  readonly tree: SourceTree;
  readonly sizeBytes: number;
  /** The first link that is absolute or may leave the root. */
  readonly escapingLink: string | null;
}

const slash = Buffer.from("/");

/** Walks the source once, without following a link. */
export async function scanSource(root: string): Promise<ScannedSource> {
  const found: Found = { paths: [], deciding: [], sizeBytes: 0, escapingLink: null };
  await walk(Buffer.from(root), "", found);
  found.paths.sort();
  const { paths, deciding, sizeBytes, escapingLink } = found;
  return { tree: makeTree(paths, await readTexts(deciding), await readLocks(deciding)), sizeBytes, escapingLink };
}

/** A tree made of the given files, for decisions that need no disk. */
export function treeOf(files: Readonly<Record<string, string>>): SourceTree {
  return makeTree(Object.keys(files).sort(), new Map(Object.entries(files)), locksOf(files));
}

function makeTree(
  paths: readonly string[],
  texts: ReadonlyMap<string, string>,
  locks: ReadonlyMap<string, LockFile>,
): SourceTree {
  const known = new Set(paths);
  return {
    paths,
    has: (path) => known.has(path),
    text: (path) => texts.get(path) ?? null,
    lock: (path) => locks.get(path) ?? null,
  };
}

interface Found {
  paths: string[];
  deciding: FoundFile[];
  sizeBytes: number;
  escapingLink: string | null;
}

// Names are bytes on disk, which need not be UTF-8; as text they are only compared with names that are.
async function walk(place: Buffer, folder: string, found: Found): Promise<void> {
  for (const entry of await readdir(place, { withFileTypes: true, encoding: "buffer" })) {
    const file = Buffer.concat([place, slash, entry.name]);
    const name = entry.name.toString("utf8");
    const path = folder === "" ? name : `${folder}/${name}`;
    if (entry.isDirectory()) await walk(file, path, found);
    else if (entry.isSymbolicLink()) await noteLink(file, path, found);
    else await noteFile(file, path, found);
  }
}

async function noteLink(file: Buffer, path: string, found: Found): Promise<void> {
  found.paths.push(path);
  if (leavesRoot(path, await readlink(file))) found.escapingLink ??= path;
}

/**
 * Whether following the link may leave the root. `..` counts up real folders only at the target's beginning: behind a name, which
 * may be another link, nobody can tell where it leads without following.
 */
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
  if (isDeciding(path)) found.deciding.push({ path, file, sizeBytes: size });
}
