import {
  closeSync,
  existsSync,
  fstatSync,
  openSync,
  readFileSync,
  readSync,
  renameSync,
  statSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { run } from "../../kit/exec.ts";
import { readLineBytes } from "../../kit/log-lines.ts";
import type { OutputChunk } from "../../ports/runtime.ts";

const readBytes = 256 * 1024;
// Calling a program to free less than this is not worth it.
const worthFreeingBytes = 1024 * 1024;
// An application may set the length of its output to anything, and positions must stay numbers that can be counted with.
const longestBytes = 2 ** 40;

/**
 * The file an application appends to. Positions count from its first byte for ever: what was read is blanked at once, because it may
 * hold secrets that the log leaves out, and freed later by punching a hole, or where the file system cannot do that by truncating (the
 * application's descriptor appends, so it goes on at the new end). `freed.json` remembers up to where bytes are gone (`floor`), how many
 * were truncated away (`base`), and up to where the disk was given back (`punched`).
 */
export class OutputFile {
  readonly #path: string;
  readonly #freedPath: string;

  constructor(instanceFolder: string) {
    this.#path = join(instanceFolder, "output");
    this.#freedPath = join(instanceFolder, "freed.json");
  }

  /** Complete lines from the cursor on; with `isEnded` also a last one without a line feed. Throws on a cursor that is not its own. */
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

  /** Blanks what lies before the cursor, and frees it sooner or later. */
  async discard(cursor: string): Promise<void> {
    const { position } = parseCursor(cursor, 0);
    const { punched } = this.#freed();
    this.#blank(position);
    if (position - punched >= worthFreeingBytes) await this.#free(position);
  }

  /** Frees the oldest output when more than `maxBytes` are kept; half is left. */
  async cap(maxBytes: number): Promise<void> {
    this.#dropTooLong();
    const { floor, base } = this.#freed();
    const end = base + (statSync(this.#path, { throwIfNoEntry: false })?.size ?? 0);
    if (end - floor > maxBytes) await this.#free(end - Math.floor(maxBytes / 2));
  }

  /** A longer file was stretched by the program (truncate, seek), not filled with output: it counts as truncated. */
  #dropTooLong(): void {
    const size = statSync(this.#path, { throwIfNoEntry: false })?.size ?? 0;
    if (size > longestBytes) truncateSync(this.#path, 0);
  }

  /** Undefined when the file ends before the offset. */
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

  /** The program truncated its own output, as `> /dev/stdout` does: its new first byte follows what was read. */
  #startAnew(position: number): Buffer {
    this.#remember({ floor: position, base: position, punched: position });
    return this.#bytes(0) ?? Buffer.alloc(0);
  }

  #freed(): Freed {
    try {
      const known = JSON.parse(readFileSync(this.#freedPath, "utf8")) as Pick<Freed, "floor" | "base"> & Partial<Freed>;
      return { punched: known.floor, ...known };
    } catch {
      return { floor: 0, base: 0, punched: 0 };
    }
  }

  #blank(position: number): void {
    const { floor, base, punched } = this.#freed();
    if (position <= floor || !existsSync(this.#path)) return;
    // The floor is known before the bytes are gone: a reader never takes blanks for output.
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
    writeFileSync(`${this.#freedPath}.new`, JSON.stringify(freed), { mode: 0o600 });
    renameSync(`${this.#freedPath}.new`, this.#freedPath);
  }

  async #free(position: number): Promise<void> {
    const { floor, base, punched } = this.#freed();
    if (position <= punched || !existsSync(this.#path)) return;
    // The floor is known before the bytes are gone: a reader never takes a hole for output.
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
  /** The position is inside a line whose beginning was already given, cut. */
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

/** The beginning of a line that is far too long, never half a character. Its reader hides secrets before it cuts further. */
function textOf(line: Buffer): string {
  const whole = line.at(-1) === 13 ? line.subarray(0, -1) : line;
  if (whole.length <= readLineBytes) return whole.toString("utf8");
  return whole
    .subarray(0, readLineBytes)
    .toString("utf8")
    .replace(/\uFFFD+$/, "");
}
