import { randomBytes } from "node:crypto";
import { chmodSync, closeSync, fsyncSync, openSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { chmod, rename, writeFile } from "node:fs/promises";
import { attempt } from "./attempt.ts";

export interface Replacing {
  /** Default 0600. */
  readonly mode?: number;
  /** Writes the content to the disk first, so that a power failure too leaves the old or the new file. */
  readonly flush?: boolean;
}

/** Replaces a file atomically: a reader sees the old or the new content, never a part. */
export function replaceFile(path: string, content: string | Buffer, { mode = 0o600, flush = false }: Replacing = {}) {
  const draft = `${path}.${process.pid}.new`;
  writeFileSync(draft, content, { mode, flush });
  // The umask narrows the mode of a new file.
  chmodSync(draft, mode);
  renameSync(draft, path);
}

/** Writes the names in a folder to the disk: without it, a power failure may take new names and renames back. */
export function syncFolder(path: string): void {
  const descriptor = openSync(path, "r");
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/** Like `replaceFile`, without blocking this process meanwhile. */
export async function replaceFileAsync(path: string, content: string, { mode = 0o600 }: Pick<Replacing, "mode"> = {}) {
  const draft = `${path}.${randomBytes(4).toString("hex")}.new`;
  await writeFile(draft, content, { mode });
  await chmod(draft, mode);
  await rename(draft, path);
}

/** Returns the text in this file, which is created with `make` unless it exists. */
export function keptText(path: string, make: () => string): string {
  try {
    writeFileSync(path, make(), { flag: "wx", mode: 0o600 });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  }
  return readFileSync(path, "utf8");
}

/** Reads a JSON file; undefined when it is missing or unreadable. */
export function readJson<T>(path: string): T | undefined {
  return attempt(() => JSON.parse(readFileSync(path, "utf8")) as T, undefined);
}

/** Reads a file; empty when it is missing or unreadable. */
export function readTextOrEmpty(path: string): string {
  return attempt(() => readFileSync(path, "utf8"), "");
}
