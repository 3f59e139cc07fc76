import { closeSync, existsSync, fstatSync, openSync, readSync, statSync, truncateSync, writeSync } from "node:fs";
import { join } from "node:path";
import { run } from "../../kit/exec.ts";
import { readLineBytes } from "../../kit/log-lines.ts";
import { trimLast } from "../../kit/trim-last.ts";
import { readJson, replaceFile } from "../../kit/whole-file.ts";
import type { OutputChunk } from "../../ports/runtime.ts";

const readBytes = 256 * 1024;
// Running a program to free less than this is not worth it.
const worthFreeingBytes = 1024 * 1024;
// An application may set its output's length to anything, but positions must stay exact numbers.
const longestBytes = 2 ** 40;

/**
 * The file that an application appends its output to. Positions always count from the first byte ever written. Bytes that were read are
 * blanked at once, because they may hold secrets that the log omits, and freed later: by punching a hole or, where the file system can't do
 * that, by truncating (the application's descriptor appends, so it continues at the new end). `freed.json` stores where the remaining bytes
 * start (`floor`), how many bytes were truncated away (`base`), and up to where disk space was freed (`punched`).
 */
export class OutputFile {
  readonly #path: string;
  readonly #freedPath: string;

  constructor(instanceFolder: string) {
    this.#path = join(instanceFolder, "output");
    this.#freedPath = join(instanceFolder, "freed.json");
  }

  /** Returns complete lines from the cursor on; with `isEnded`, also a last line without a line feed. Throws for an invalid cursor. */
  read(cursor: string | null, isEnded: boolean): OutputChunk {
    const { floor, base } = this.#freed();
    const asked = parseCursor(cursor, floor);
    const from = { ...asked, position: Math.max(asked.position, floor) };
    const droppedBytes = from.position - asked.position;
    this.#dropTooLong();
    const bytes = this.#bytes(from.position - base) ?? this.#startAnew(from.position);
    const { lines, used, isInsideCutLine } = splitLines(bytes, from.isInsideCutLine, isEnded);
    return { lines, cursor: `${from.position + used}${isInsideCutLine ? "c" : ""}`, dropped_bytes: droppedBytes };
  }

  /** Blanks the bytes before the cursor; frees their disk space once that is worth it. */
  async discard(cursor: string): Promise<void> {
    const { position } = parseCursor(cursor, 0);
    const { punched } = this.#freed();
    this.#blank(position);
    if (position - punched >= worthFreeingBytes) await this.#free(position);
  }

  /** Frees the oldest output when more than `maxBytes` are kept; keeps half of `maxBytes`. */
  async cap(maxBytes: number): Promise<void> {
    this.#dropTooLong();
    const { floor, base } = this.#freed();
    const end = base + (statSync(this.#path, { throwIfNoEntry: false })?.size ?? 0);
    if (end - floor > maxBytes) await this.#free(end - Math.floor(maxBytes / 2));
  }

  /** A longer file was stretched by the program (truncate, seek), not filled with output, so treat it as truncated. */
  #dropTooLong(): void {
    const size = statSync(this.#path, { throwIfNoEntry: false })?.size ?? 0;
    if (size > longestBytes) truncateSync(this.#path, 0);
  }

  /** Returns undefined when the file ends before the offset. */
  #bytes(offset: number): Buffer | undefined {
    if (!existsSync(this.#path)) return Buffer.alloc(0);
    const fd = openSync(this.#path, "r");
    try {
      const size = fstatSync(fd).size;
      if (offset > size) return undefined;
      const buffer = Buffer.alloc(Math.min(readBytes, size - offset));
      return buffer.subarray(0, readSync(fd, buffer, 0, buffer.length, offset));
    } finally {
      closeSync(fd);
    }
  }

  /** Handles a program that truncated its own output, as `> /dev/stdout` does: the new first byte follows what was read. */
  #startAnew(position: number): Buffer {
    this.#remember({ floor: position, base: position, punched: position });
    return this.#bytes(0) ?? Buffer.alloc(0);
  }

  #freed(): Freed {
    const known = readJson<Pick<Freed, "floor" | "base"> & Partial<Freed>>(this.#freedPath);
    return known === undefined ? { floor: 0, base: 0, punched: 0 } : { punched: known.floor, ...known };
  }

  #blank(position: number): void {
    const { floor, base, punched } = this.#freed();
    if (position <= floor || !existsSync(this.#path)) return;
    // Store the floor before the bytes are overwritten, so that a reader never takes blanks for output.
    this.#remember({ floor: position, base, punched });
    const fd = openSync(this.#path, "r+");
    try {
      const blanks = Buffer.alloc(Math.min(readBytes, position - floor));
      for (let at = floor; at < position; at += blanks.length) {
        writeSync(fd, blanks, 0, Math.min(blanks.length, position - at), at - base);
      }
    } finally {
      closeSync(fd);
    }
  }

  #remember(freed: Freed): void {
    replaceFile(this.#freedPath, JSON.stringify(freed));
  }

  async #free(position: number): Promise<void> {
    const { floor, base, punched } = this.#freed();
    if (position <= punched || !existsSync(this.#path)) return;
    // Store the floor before the bytes are freed, so that a reader never takes a hole for output.
    this.#remember({ floor: Math.max(floor, position), base, punched: position });
    const args = ["--punch-hole", "--offset", "0", "--length", String(position - base), this.#path];
    const punch = await run({ file: "fallocate", args }, { timeoutMs: 30_000 }).catch(() => undefined);
    if (punch?.exitCode === 0) return;
    const end = base + statSync(this.#path).size;
    truncateSync(this.#path, 0);
    this.#remember({ floor: end, base: end, punched: end });
  }
}

interface Freed {
  readonly floor: number;
  readonly base: number;
  readonly punched: number;
}

interface Cursor {
  readonly position: number;
  /** True if the position is inside a line whose truncated beginning was already returned. */
  readonly isInsideCutLine: boolean;
}

function parseCursor(cursor: string | null, first: number): Cursor {
  if (cursor === null) return { position: first, isInsideCutLine: false };
  const found = /^(\d{1,15})(c?)$/.exec(cursor);
  if (!found) throw new Error(`not a cursor of an output: ${cursor}`);
  return { position: Number(found[1]), isInsideCutLine: found[2] === "c" };
}

function splitLines(bytes: Buffer, startsInsideCutLine: boolean, isEnded: boolean) {
  const lines: string[] = [];
  let isInsideCutLine = startsInsideCutLine;
  let used = 0;
  while (used < bytes.length) {
    const lineFeed = bytes.indexOf(10, used);
    const end = lineFeed < 0 ? bytes.length : lineFeed;
    const isWhole = lineFeed >= 0 || (isEnded && bytes.length < readBytes);
    if (!isWhole && !isInsideCutLine && end - used <= readLineBytes) break;
    if (!isInsideCutLine) lines.push(textOf(bytes.subarray(used, end)));
    isInsideCutLine = !isWhole;
    used = isWhole ? Math.min(end + 1, bytes.length) : end;
  }
  return { lines, used, isInsideCutLine };
}

/** Returns a line's text, truncated at `readLineBytes` but never within a character. The caller removes secrets before it truncates further. */
function textOf(line: Buffer): string {
  const whole = line.at(-1) === 13 ? line.subarray(0, -1) : line;
  if (whole.length <= readLineBytes) return whole.toString("utf8");
  return trimLast(whole.toString("utf8", 0, readLineBytes), "\uFFFD");
}
