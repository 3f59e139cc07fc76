import { constants } from "node:fs";
import { open, readdir } from "node:fs/promises";

/** A folder that stays the same one while it is open, wherever its name on the disk leads meanwhile. */
export interface OpenFolder extends AsyncDisposable {
  /** Its name for as long as it is open. A link in a name below it is still followed, so each further folder is opened too. */
  readonly path: string;
}

const flags = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;
const missing = new Set(["ENOENT", "ENOTDIR", "ELOOP"]);

/**
 * Opens a folder below `root` one name at a time and follows no link, as openat(2) does: for root's work in folders that belong to others.
 * Undefined when one of the names is missing or no folder.
 */
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

/** Visits every regular file below an open folder: its path during the visit, and the names that lead to it. Follows no link. */
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

/** The content of a small regular file; undefined for a link, a pipe, a larger file, or none. */
export async function readSmallFile(path: string, mostBytes = 64 * 1024): Promise<Buffer | undefined> {
  // Without O_NONBLOCK opening a pipe would wait for its other end.
  const handle = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK).catch(() => null);
  if (handle === null) return undefined;
  try {
    const found = await handle.stat();
    return found.isFile() && found.size <= mostBytes ? await handle.readFile() : undefined;
  } finally {
    await handle.close();
  }
}
