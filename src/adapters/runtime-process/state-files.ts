import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** Reads a file; undefined when it is missing, empty when it is permanently unreadable. */
export function readText(path: string): string | undefined {
  return readOr("", () => readFileSync(path, "utf8"));
}

/** Reads the object in a JSON file; undefined when the file is missing, null when a power failure left invalid content. */
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

/** Returns the names in a folder; none when the folder is missing or permanently unreadable. */
export function namesIn(folder: string): string[] {
  return readOr([], () => readdirSync(folder)) ?? [];
}

export function numbersIn(...path: readonly string[]): number[] {
  return namesIn(join(...path))
    .filter((name) => /^\d+$/.test(name))
    .map(Number);
}

// These errors say nothing about the file itself. A file that is unreadable for the moment must not count as missing, nor a running
// application as stopped.
const passing = new Set(["EMFILE", "ENFILE", "ENOMEM", "EAGAIN", "EINTR"]);

/** Treats a permanently unreadable file as empty: a damaged disk must not stop the reconciliation of all applications. */
function readOr<T>(damaged: T, read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? "";
    if (passing.has(code)) throw error;
    return code === "ENOENT" || code === "ENOTDIR" ? undefined : damaged;
  }
}
