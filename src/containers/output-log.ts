import { statSync } from "node:fs";
import { open } from "node:fs/promises";
import type { OutputChunk } from "../ports/runtime.ts";

/** What a reader gets of a line at most; the rest is left out. */
const readLineBytes = 128 * 1024;
const readBytes = 1024 * 1024;

/**
 * The output of a container in the engine's own file (driver `json-file`), read where it lies: the engine's API would decode all of it for each
 * question, and has no cheap way to tell that something is new. A file that grows past its limit is renamed to `.1`, which replaces an older one.
 * A cursor is `<file>:<offset>`, with `c` inside a line whose beginning was given already.
 */
export class OutputLog {
  readonly #path: string;

  constructor(rootDir: string, containerId: string) {
    this.#path = `${rootDir}/containers/${containerId}/${containerId}-json.log`;
  }

  /** Changes whenever something was written. */
  mark(): string {
    const stat = statSync(this.#path, { throwIfNoEntry: false, bigint: true });
    return stat === undefined ? "none" : `${stat.ino}:${stat.size}`;
  }

  async read(cursor: string | null, isEnded: boolean): Promise<OutputChunk> {
    const files = this.#files();
    const from = parseCursor(cursor);
    const at = from === null ? 0 : files.findIndex(({ name }) => name === from.file);
    const isLost = from !== null && at < 0 && from.file !== "";
    const reader = new LineReader(from !== null && !isLost && from.isInsideCutLine);
    const toRead = files.slice(Math.max(0, at));
    let position = { file: from?.file ?? "", offset: from?.offset ?? 0 };
    let left = readBytes;
    for (const [index, file] of toRead.entries()) {
      const start = index === 0 && from !== null && !isLost && at >= 0 ? from.offset : 0;
      const read = await readRecords(file.path, start, left);
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

  /** Older first. A number of an inode is soon used again, so the time of birth belongs to a file's name. */
  #files() {
    return [`${this.#path}.1`, this.#path].flatMap((path) => {
      const stat = statSync(path, { throwIfNoEntry: false, bigint: true });
      return stat === undefined ? [] : [{ path, name: `${stat.ino}.${stat.birthtimeNs}` }];
    });
  }
}

const logFileBytes = 16 * 1024 * 1024;

/** Puts the engine's records together to lines. */
class LineReader {
  readonly lines: string[] = [];
  isInsideCutLine: boolean;
  #pending = "";

  constructor(isInsideCutLine: boolean) {
    this.isInsideCutLine = isInsideCutLine;
  }

  /** Whether a reader may go on behind this record: nothing before it waits for more. */
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

  /** The last line of an application that has ended may lack its line feed. */
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
  return bytes
    .subarray(0, readLineBytes)
    .toString("utf8")
    .replace(/\uFFFD+$/, "");
}

interface Records {
  readonly records: readonly { readonly text: string; readonly end: number }[];
  readonly bytes: number;
  readonly end: number;
  readonly isAtEnd: boolean;
}

/** The whole records of a file from an offset on, at most about `bytes` of them. */
async function readRecords(path: string, start: number, bytes: number): Promise<Records> {
  const file = await open(path, "r");
  try {
    // One record more than the budget fits in any case: the engine cuts output into pieces of 16 KiB.
    const buffer = Buffer.alloc(Math.max(bytes, 256 * 1024));
    const { bytesRead } = await file.read(buffer, 0, buffer.length, start);
    const records: { text: string; end: number }[] = [];
    let used = 0;
    for (let line = buffer.indexOf(10); line >= 0 && line < bytesRead; line = buffer.indexOf(10, used)) {
      records.push({ text: textOf(buffer.subarray(used, line)), end: start + line + 1 });
      used = line + 1;
    }
    return { records, bytes: used, end: start + used, isAtEnd: bytesRead < buffer.length };
  } finally {
    await file.close();
  }
}

/** A crash of the machine may leave half a record. */
function textOf(record: Buffer): string {
  try {
    return (JSON.parse(record.toString("utf8")) as { log: string }).log;
  } catch {
    return "";
  }
}

function parseCursor(cursor: string | null) {
  if (cursor === null) return null;
  const found = /^([\d.]*):(\d{1,15})(c?)$/.exec(cursor);
  if (!found) throw new Error(`not a cursor of an output: ${cursor}`);
  return { file: found[1] as string, offset: Number(found[2]), isInsideCutLine: found[3] === "c" };
}
