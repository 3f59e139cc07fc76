import { appendFile, readFile, stat } from "node:fs/promises";
import type { BuildTime } from "../../ports/log-store.ts";

// A log may get thousands of appends a second, and readers need no more than the second.
const leastMs = 1000;

/**
 * Stores that the lines of a log from this offset on are written now, unless the newest time is less than a second old. A time that can't be
 * stored is left out, because the lines are stored.
 */
export async function appendBuildTime(path: string, offset: number): Promise<void> {
  const now = Date.now();
  const written = await stat(path).catch(() => undefined);
  if (written !== undefined && now - written.mtimeMs < leastMs) return;
  await appendFile(path, `${offset} ${new Date(now).toISOString()}\n`, { mode: 0o600 }).catch(() => {});
}

/** Reads the times of a log; empty if it has none. A line that a crash cut off is left out. */
export async function readBuildTimes(path: string): Promise<BuildTime[]> {
  const text = await readFile(path, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return "";
    throw error;
  });
  return [...text.matchAll(/^(\d+) (\S+Z)$/gm)].map(([, offset, at = ""]) => ({ offset: Number(offset), at }));
}
