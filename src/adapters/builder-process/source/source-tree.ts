import { lstat, open, readdir, readlink } from "node:fs/promises";
import { constants } from "node:fs";
import { isAbsolute } from "node:path";

/** The unpacked source, as detection sees it: paths relative to the root, and the text of the few files that decide. */
export interface SourceTree {
  /** All files (not folders), sorted. */
  readonly paths: readonly string[];
  has(path: string): boolean;
  /** The text of a small file, or null when it is missing, a link, or larger than 16 MiB. */
  text(path: string): string | null;
}

export interface ScannedSource {
  readonly tree: SourceTree;
  readonly sizeBytes: number;
  /** The first link that is absolute or may leave the root. */
  readonly escapingLink: string | null;
}

const largestTextBytes = 16 * 1024 * 1024;
// Only these are read ahead: detection is then pure, and works on the source as it was pushed.
const decidingNames =
  /(?:^|\/)(?:package\.json|[^/]*\.py)$|^(?:Procfile|Pipfile|Dockerfile|go\.mod|go\.sum|\.nvmrc|\.node-version|\.npmrc|\.yarnrc|\.yarnrc\.yml|package-lock\.json|npm-shrinkwrap\.json|pnpm-lock\.yaml|pnpm-workspace\.yaml|yarn\.lock|requirements[^/]*\.txt|pyproject\.toml|setup\.py|setup\.cfg|\.python-version|runtime\.txt|index\.html)$|^(?:[^/]+\/){0,3}[^/]+\.go$/;
const slash = Buffer.from("/");
const skippedFolders = new Set(["node_modules", ".git", ".venv", "venv"]);

/** Walks the source once, without following a link. */
export async function scanSource(root: string): Promise<ScannedSource> {
  const found = {
    paths: [] as string[],
    texts: new Map<string, string>(),
    sizeBytes: 0,
    escapingLink: null as string | null,
  };
  await walk(Buffer.from(root), "", found);
  found.paths.sort();
  return { tree: makeTree(found.paths, found.texts), sizeBytes: found.sizeBytes, escapingLink: found.escapingLink };
}

/** A tree made of the given files, for decisions that need no disk. */
export function treeOf(files: Readonly<Record<string, string>>): SourceTree {
  return makeTree(Object.keys(files).sort(), new Map(Object.entries(files)));
}

function makeTree(paths: readonly string[], texts: ReadonlyMap<string, string>): SourceTree {
  const known = new Set(paths);
  return { paths, has: (path) => known.has(path), text: (path) => texts.get(path) ?? null };
}

interface Found {
  paths: string[];
  texts: Map<string, string>;
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
  const isForeign = path.split("/").some((part) => skippedFolders.has(part));
  if (isForeign || size > largestTextBytes || !decidingNames.test(path)) return;
  found.texts.set(path, await readText(file));
}

async function readText(file: Buffer): Promise<string> {
  const handle = await open(file, constants.O_RDONLY | constants.O_NOFOLLOW);
  try {
    return await handle.readFile("utf8");
  } finally {
    await handle.close();
  }
}
