import { createHash, hash } from "node:crypto";
import { constants } from "node:fs";
import { open, type FileHandle } from "node:fs/promises";

/** A file that was found in the source. Its name on disk is bytes, which need not be UTF-8. */
export interface FoundFile {
  readonly path: string;
  readonly file: Buffer;
  readonly sizeBytes: number;
}

/** A file of which only its digest and its first lines matter. */
export interface LockFile {
  readonly digest: string;
  readonly beginning: string;
}

// What decides is written by hand and small; pip's hashes make lists of requirements longer. All of it stays in memory during the build,
// and is searched on the thread that answers everybody.
const limits = { textBytes: 256 * 1024, requirementsBytes: 1024 * 1024, totalBytes: 8 * 1024 * 1024 };
const longestLockBytes = 16 * 1024 * 1024;
const beginningBytes = 4096;

const requirements = /^requirements[^/]*\.txt$/;
const manifests =
  /^(?:package\.json|Procfile|Pipfile|go\.mod|\.nvmrc|\.node-version|pyproject\.toml)$|\.py$|^(?:[^/]+\/){0,3}[^/]+\.go$/;
const locks = /^(?:\.npmrc|\.yarnrc|\.yarnrc\.yml|package-lock\.json|npm-shrinkwrap\.json|pnpm-lock\.yaml|yarn\.lock)$/;
const skippedFolders = new Set(["node_modules", ".git", ".venv", "venv"]);

/** Whether detection or planning may ask for what is in this file. */
export function isDeciding(path: string): boolean {
  if (locks.test(path) || requirements.test(path)) return true;
  return manifests.test(path) && !path.split("/").some((part) => skippedFolders.has(part));
}

/** The texts of the files that decide, those nearest to the root first, until together they are too much. */
export async function readTexts(files: readonly FoundFile[]): Promise<Map<string, string>> {
  const wanted = files.filter(({ path, sizeBytes }) => !locks.test(path) && sizeBytes <= largest(path));
  const texts = new Map<string, string>();
  let leftBytes = limits.totalBytes;
  for (const { path, file, sizeBytes } of wanted.toSorted(byDepth)) {
    leftBytes -= sizeBytes;
    if (leftBytes < 0) break;
    texts.set(path, await withFile(file, (handle) => handle.readFile("utf8")));
  }
  return texts;
}

/** What is known of lock files and of package managers' settings. */
export async function readLocks(files: readonly FoundFile[]): Promise<Map<string, LockFile>> {
  const found = new Map<string, LockFile>();
  for (const { path, file, sizeBytes } of files) {
    if (locks.test(path) && sizeBytes <= longestLockBytes) found.set(path, await withFile(file, readLock));
  }
  return found;
}

/** What `readLocks` would say of these texts. */
export function locksOf(files: Readonly<Record<string, string>>): Map<string, LockFile> {
  const entries = Object.entries(files).filter(([path]) => locks.test(path));
  return new Map(
    entries.map(([path, text]) => [path, { digest: hash("sha256", text), beginning: text.slice(0, beginningBytes) }]),
  );
}

const largest = (path: string): number => (requirements.test(path) ? limits.requirementsBytes : limits.textBytes);

function byDepth(a: FoundFile, b: FoundFile): number {
  const depth = ({ path }: FoundFile) => path.split("/").length;
  return depth(a) - depth(b) || (a.path < b.path ? -1 : 1);
}

async function readLock(handle: FileHandle): Promise<LockFile> {
  const digest = createHash("sha256");
  let beginning: string | null = null;
  for await (const chunk of handle.createReadStream({ autoClose: false }) as AsyncIterable<Buffer>) {
    beginning ??= chunk.toString("utf8", 0, beginningBytes);
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
