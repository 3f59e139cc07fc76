import { statSync } from "node:fs";
import { open, type FileHandle } from "node:fs/promises";
import { attempt } from "../kit/attempt.ts";
import { trimLast } from "../kit/trim-last.ts";
import type { OutputChunk } from "../ports/runtime.ts";

/** A longer line is cut to this size. */
const readLineBytes = 128 * 1024;
const readBytes = 1024 * 1024;

/**
 * Reads a container's output directly from the engine's log file (driver `json-file`): the engine's API would decode the whole file on each
 * request and offers no cheap check for new output. When the file reaches its limit, the engine renames it to `.1`, replacing the previous
 * one. A cursor is `<file>:<offset>`, followed by `c` inside a line whose beginning was already returned.
 */
export class OutputLog {
  readonly #path: string;

  constructor(rootDir: string, containerId: string) {
    this.#path = `${rootDir}/containers/${containerId}/${containerId}-json.log`;
  }

  /** Changes whenever output was written. */
  mark(): string {
    const stat = statSync(this.#path, { throwIfNoEntry: false, bigint: true });
    return stat === undefined ? "none" : `${stat.ino}:${stat.size}`;
  }

  async read(cursor: string | null, isEnded: boolean): Promise<OutputChunk> {
    const files = await this.#open();
    try {
      return await readFrom(files, cursor, isEnded);
    } finally {
      await Promise.all(files.map(({ handle }) => handle.close()));
    }
  }

  /**
   * Opens the log files, oldest first. The newer one is opened before the older: if the engine renames it in between, it is found twice and
   * nothing is missed. Inode numbers are soon reused, so a file's name includes its birth time.
   */
  async #open(): Promise<readonly LogFile[]> {
    const files: LogFile[] = [];
    for (const path of [this.#path, `${this.#path}.1`]) {
      const handle = await open(path, "r").catch((error: NodeJS.ErrnoException) => {
        if (error.code !== "ENOENT") throw error;
      });
      if (handle === undefined) continue;
      const { ino, birthtimeNs } = await handle.stat({ bigint: true });
      const name = `${ino}.${birthtimeNs}`;
      if (files.some((other) => other.name === name)) await handle.close();
      else files.unshift({ handle, name });
    }
    return files;
  }
}

interface LogFile {
  readonly handle: FileHandle;
  readonly name: string;
}

const logFileBytes = 16 * 1024 * 1024;

async function readFrom(files: readonly LogFile[], cursor: string | null, isEnded: boolean): Promise<OutputChunk> {
  const from = parseCursor(cursor);
  const at = from === null ? 0 : files.findIndex(({ name }) => name === from.file);
  const isLost = from !== null && at < 0 && from.file !== "";
  const reader = new LineReader(from !== null && !isLost && from.isInsideCutLine);
  const toRead = files.slice(Math.max(0, at));
  let position = { file: from?.file ?? "", offset: from?.offset ?? 0 };
  let left = readBytes;
  for (const [index, file] of toRead.entries()) {
    const start = index === 0 && from !== null && !isLost && at >= 0 ? from.offset : 0;
    const read = await readRecords(file.handle, start, left);
    for (const { text, end } of read.records) if (reader.add(text)) position = { file: file.name, offset: end };
    left -= read.bytes;
    if (left <= 0 || !read.isAtEnd) break;
    const isLast = index === toRead.length - 1;
    if (isLast && isEnded && reader.finish()) position = { file: file.name, offset: read.end };
  }
  return {
    lines: reader.lines,
    cursor: `${position.file}:${position.offset}${reader.isInsideCutLine ? "c" : ""}`,
    dropped_bytes: isLost ? Math.max(1, logFileBytes - (from?.offset ?? 0)) : 0,
  };
}

/** Joins the engine's records into lines. */
class LineReader {
  readonly lines: string[] = [];
  isInsideCutLine: boolean;
  #pending = "";

  constructor(isInsideCutLine: boolean) {
    this.isInsideCutLine = isInsideCutLine;
  }

  /** Adds a record. Returns whether a cursor may point behind it, which is false while a line is incomplete. */
  add(text: string): boolean {
    const isWhole = text.endsWith("\n");
    if (!this.isInsideCutLine) this.#pending += isWhole ? text.slice(0, -1) : text;
    if (isWhole) {
      if (!this.isInsideCutLine) this.lines.push(cut(this.#pending));
      this.#pending = "";
      this.isInsideCutLine = false;
      return true;
    }
    if (this.isInsideCutLine || this.#pending.length <= readLineBytes) return this.isInsideCutLine;
    this.lines.push(cut(this.#pending));
    this.#pending = "";
    this.isInsideCutLine = true;
    return true;
  }

  /** Returns the last line of an application that has exited, even without a line feed. */
  finish(): boolean {
    if (this.#pending === "") return false;
    this.lines.push(cut(this.#pending));
    this.#pending = "";
    return true;
  }
}

function cut(line: string): string {
  const whole = line.endsWith("\r") ? line.slice(0, -1) : line;
  const bytes = Buffer.from(whole);
  if (bytes.length <= readLineBytes) return whole;
  return trimLast(bytes.toString("utf8", 0, readLineBytes), "\uFFFD");
}

/** Reads the complete records of a file from offset `start`, about `bytes` at most. */
async function readRecords(file: FileHandle, start: number, bytes: number) {
  // Always large enough for one record: the engine splits output into pieces of 16 KiB.
  const buffer = Buffer.alloc(Math.max(bytes, 256 * 1024));
  const { bytesRead } = await file.read(buffer, 0, buffer.length, start);
  const records: { text: string; end: number }[] = [];
  let used = 0;
  for (let line = buffer.indexOf(10); line >= 0 && line < bytesRead; line = buffer.indexOf(10, used)) {
    records.push({ text: textOf(buffer.subarray(used, line)), end: start + line + 1 });
    used = line + 1;
  }
  return { records, bytes: used, end: start + used, isAtEnd: bytesRead < buffer.length };
}

/** Returns "" for a record that a machine crash left incomplete. */
function textOf(record: Buffer): string {
  return attempt(() => (JSON.parse(record.toString("utf8")) as { log: string }).log, "");
}

function parseCursor(cursor: string | null) {
  if (cursor === null) return null;
  const found = /^([\d.]*):(\d{1,15})(c?)$/.exec(cursor);
  if (!found) throw new Error(`not a cursor of an output: ${cursor}`);
  return { file: found[1] as string, offset: Number(found[2]), isInsideCutLine: found[3] === "c" };
}
