import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

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
