import { readdirSync, readFileSync } from "node:fs";
import { open, rename } from "node:fs/promises";
import { dirname, join } from "node:path";

/** Replaces a file so that after a power cut the old text or the new one is there, whole. Without a flush it may be an empty one. */
export async function replaceFile(path: string, text: string): Promise<void> {
  const draft = `${path}.new`;
  const file = await open(draft, "w", 0o600);
  try {
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(draft, path);
  await syncFolders(dirname(path), dirname(path));
}

/** Makes the names in these folders durable, from the inner one up to the outer one. */
export async function syncFolders(inner: string, outer: string): Promise<void> {
  for (let folder = inner; ; folder = dirname(folder)) {
    const handle = await open(folder, "r");
    await handle.sync().finally(() => handle.close());
    if (folder === outer || folder === dirname(folder)) return;
  }
}

/** Undefined when there is none, empty when it cannot be read ever again. */
export function readText(path: string): string | undefined {
  return readOr("", () => readFileSync(path, "utf8"));
}

/** The object in a JSON file; undefined when there is no such file, null when a power cut left something else of it. */
export function readObject(path: string): object | null | undefined {
  const text = readText(path);
  if (text === undefined) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" ? value : null;
  } catch {
    return null;
  }
}

/** What lies in a folder; nothing when there is none, or when it cannot be read ever again. */
export function namesIn(folder: string): string[] {
  return readOr([], () => readdirSync(folder)) ?? [];
}

/** The folders below a folder that have a number for a name. */
export function numbersIn(...path: readonly string[]): number[] {
  return namesIn(join(...path))
    .filter((name) => /^\d+$/.test(name))
    .map(Number);
}

// Of these the file knows nothing: what cannot be read for now must not count as missing, or a running application as ended.
const passing = new Set(["EMFILE", "ENFILE", "ENOMEM", "EAGAIN", "EINTR"]);

/** A damaged disk must not stop the care of all applications, so that what it holds no more counts as emptied. */
function readOr<T>(damaged: T, read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? "";
    if (passing.has(code)) throw error;
    return code === "ENOENT" || code === "ENOTDIR" ? undefined : damaged;
  }
}
