import { constants } from "node:fs";
import { open, readdir } from "node:fs/promises";

/** An open folder. `path` refers to this folder even when another process renames or replaces it. */
export interface OpenFolder extends AsyncDisposable {
  /** Valid while the folder is open. Links below it are still followed, so open each further folder as well. */
  readonly path: string;
}

const flags = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;
const missing = new Set(["ENOENT", "ENOTDIR", "ELOOP"]);

/** Opens a folder below `root` without following links, for root's work in users' folders. Undefined when a name is missing or no folder. */
export async function openFolder(root: string, ...names: readonly string[]): Promise<OpenFolder | undefined> {
  let folder = await openOne(`${root}/.`);
  for (const name of names) {
    if (folder === undefined) return undefined;
    await using outer = folder;
    folder = await openOne(`${outer.path}/${name}`);
  }
  return folder;
}

async function openOne(path: string): Promise<OpenFolder | undefined> {
  try {
    const handle = await open(path, flags);
    return { path: `/proc/self/fd/${handle.fd}`, [Symbol.asyncDispose]: () => handle.close() };
  } catch (error) {
    if (missing.has((error as NodeJS.ErrnoException).code ?? "")) return undefined;
    throw error;
  }
}

/** Visits every regular file below an open folder without following links, by a path that is valid during the visit, and its names. */
export async function visitFiles(
  folder: OpenFolder,
  visit: (file: string, names: readonly string[]) => Promise<void>,
  above: readonly string[] = [],
): Promise<void> {
  for (const entry of await readdir(folder.path, { withFileTypes: true })) {
    const names = [...above, entry.name];
    if (entry.isFile()) await visit(`${folder.path}/${entry.name}`, names);
    if (!entry.isDirectory()) continue;
    await using inner = await openFolder(folder.path, entry.name);
    if (inner !== undefined) await visitFiles(inner, visit, names);
  }
}

/** Returns the content of a small regular file; undefined for a link, a pipe, a larger file or a missing one. */
export async function readSmallFile(path: string, mostBytes = 64 * 1024): Promise<Buffer | undefined> {
  // Without O_NONBLOCK, opening a pipe blocks until its other end is opened.
  const handle = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK).catch(() => null);
  if (handle === null) return undefined;
  try {
    const found = await handle.stat();
    return found.isFile() && found.size <= mostBytes ? await handle.readFile() : undefined;
  } finally {
    await handle.close();
  }
}
