import { open, type FileHandle } from "node:fs/promises";
import { join } from "node:path";
import { appendFile, endOfLines, readRange } from "./append-file.ts";

const lineFeed = 0x0a;

/** Appends lines to a build's log and resolves with their offset. Truncates the log at `limitBytes` and marks the truncation with a last line. */
export async function appendBuildLog(path: string, lines: readonly string[], limitBytes: number): Promise<number> {
  const mark = Buffer.from(` !     The log is longer than ${sizeInWords(limitBytes)}: the rest is cut off.\n`);
  return appendFile(path, async (size, file) => {
    if (await endsWith(file, size, mark)) return Buffer.alloc(0);
    const whole = Buffer.from(lines.map((line) => `${line}\n`).join(""));
    const room = limitBytes - mark.length - size;
    if (whole.length <= room) return whole;
    return Buffer.concat([whole.subarray(0, whole.subarray(0, Math.max(0, room)).lastIndexOf(lineFeed) + 1), mark]);
  });
}

/**
 * Reads complete lines from `offset` on, `maxBytes` at most. A single line that is longer is returned alone, so that every read makes
 * progress.
 */
export async function readBuildLog(
  path: string,
  offset: number,
  maxBytes: number,
): Promise<{ text: string; next_offset: number }> {
  const file = await open(path, "r").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return undefined;
    throw error;
  });
  if (file === undefined) return { text: "", next_offset: offset };
  try {
    const end = await endOfLines(file);
    const bytes = await wholeLines(file, { from: offset, end, maxBytes });
    return { text: bytes.toString("utf8"), next_offset: offset + bytes.length };
  } finally {
    await file.close();
  }
}

export function buildLogFile(dir: string, buildId: string): string {
  return join(dir, `${buildId}.log`);
}

export function buildTimesFile(dir: string, buildId: string): string {
  return join(dir, `${buildId}.times`);
}

async function wholeLines(file: FileHandle, range: { from: number; end: number; maxBytes: number }): Promise<Buffer> {
  const { from, end } = range;
  for (let size = Math.max(1, range.maxBytes); from < end; size *= 2) {
    const bytes = await readRange(file, from, Math.min(end, from + size));
    // The first read may hold many lines; a larger one is needed only for a line longer than `maxBytes`, so return that line alone.
    const lastEnd = size > range.maxBytes ? bytes.indexOf(lineFeed) : bytes.lastIndexOf(lineFeed);
    if (lastEnd >= 0) return bytes.subarray(0, lastEnd + 1);
    if (bytes.length < size) break;
  }
  return Buffer.alloc(0);
}

async function endsWith(file: FileHandle, size: number, mark: Buffer): Promise<boolean> {
  return size >= mark.length && (await readRange(file, size - mark.length, size)).equals(mark);
}

function sizeInWords(bytes: number): string {
  const mebibytes = bytes / (1024 * 1024);
  return Number.isInteger(mebibytes) ? `${mebibytes} MiB` : `${bytes} bytes`;
}
