import { mkdir, open, readdir, rm, stat, truncate, type FileHandle } from "node:fs/promises";
import { join } from "node:path";
import type { RuntimeChoice, RuntimeLine, RuntimePage, RuntimeQuery } from "../../ports/log-store.ts";
import { appendFile, endOfLines, readRange } from "./append-file.ts";

/** How much of a project's log to keep: `segments` files of about `segmentBytes` each. */
export interface RuntimeLimits {
  readonly segmentBytes: number;
  readonly segments: number;
}

export interface StoredBatch {
  readonly segment: number;
  readonly offset: number;
}

const web = "web";
const lineFeed = 0x0a;
const blockBytes = 256 * 1024;
// Limits a page's memory and response size, whatever the number of lines.
const mostPageBytes = 2 * 1024 * 1024;

/** Encodes lines as stored: one JSON object a line. Omits the process type `web`, the most frequent one. */
export function encodeLines(lines: readonly RuntimeLine[]): Buffer {
  return Buffer.from(lines.map((line) => `${JSON.stringify(storedLine(line))}\n`).join(""));
}

function storedLine({ at, deployment, process, replica, text }: RuntimeLine) {
  return process === web ? { at, deployment, replica, text } : { at, deployment, process, replica, text };
}

/**
 * Appends a batch to the newest file of the folder, or to a new one if that is full, and deletes the oldest files over the limit. Files are
 * numbered and never renamed, so that cursors stay valid. Calls `intend` with the batch's position before it writes.
 */
export async function appendBatch(
  dir: string,
  batch: Buffer,
  limits: RuntimeLimits,
  intend: (at: StoredBatch) => Promise<void>,
): Promise<void> {
  await mkdir(dir, { recursive: true, mode: 0o700 });
  const segments = await listSegments(dir);
  const newest = segments.at(-1);
  const isFull = newest !== undefined && (await stat(segmentFile(dir, newest))).size >= limits.segmentBytes;
  const segment = newest === undefined ? 1 : isFull ? newest + 1 : newest;
  await appendFile(segmentFile(dir, segment), async (offset) => {
    await intend({ segment, offset });
    return batch;
  });
  const kept = segment === newest ? segments : [...segments, segment];
  for (const old of kept.slice(0, -limits.segments)) await rm(segmentFile(dir, old), { force: true });
}

/** Reads a batch; undefined when its file is gone. */
export async function readBatch(dir: string, at: StoredBatch, length: number): Promise<Buffer | undefined> {
  return withSegment(dir, at.segment, (file) => readRange(file, at.offset, at.offset + length));
}

/** Removes the part of a batch that was written before a crash, unless other lines follow it. */
export async function dropPart(dir: string, at: StoredBatch, length: number): Promise<void> {
  const path = segmentFile(dir, at.segment);
  const size = await stat(path).then(
    (found) => found.size,
    () => 0,
  );
  if (size > at.offset && size < at.offset + length) await truncate(path, at.offset);
}

/** Reads the newest lines, or the first ones after a cursor. If the cursor's file has been deleted, reading starts at the oldest line kept. */
export async function readPage(dir: string, query: RuntimeQuery): Promise<RuntimePage> {
  const segments = await segmentsSince(dir, query.since);
  const after = query.after === undefined ? undefined : parseCursor(query.after);
  const isWanted = lineFilter(query, (line) => decodeLine(line).text);
  const wanted = { room: createRoom(query.limit), isWanted };
  return after === undefined ? readNewest(dir, segments, wanted) : readBehind(dir, segments, { ...wanted, after });
}

/** Visits the lines of a log that match, the newest first, until `visit` returns false. */
export async function visitRuntime(
  dir: string,
  query: RuntimeChoice,
  visit: (line: RuntimeLine) => boolean,
): Promise<void> {
  const isWanted = lineFilter(query, (line) => decodeLine(line).text);
  await visitLines(dir, query, (line) => visit(decodeLine(line)), isWanted);
}

/** Visits the lines of the folder's files, the newest first, until `visit` returns false. */
export async function visitLines(
  dir: string,
  range: Pick<RuntimeChoice, "since" | "until">,
  visit: (line: string) => boolean,
  isWanted = timeFilter(range) ?? (() => true),
): Promise<void> {
  let isOver = false;
  const room: Room = {
    get isFull() {
      return isOver;
    },
    take(line) {
      isOver ||= !visit(line);
      return false;
    },
  };
  for (const segment of (await segmentsSince(dir, range.since)).toReversed()) {
    await withSegment(dir, segment, (file) => lastLines(file, { room, isWanted }));
    if (isOver) return;
  }
}

type Room = ReturnType<typeof createRoom>;

function createRoom(limit: number) {
  let lines = 0;
  let bytes = 0;
  let isFull = limit <= 0;
  return {
    get isFull() {
      return isFull;
    },
    /** Returns whether a line still fits and counts it; the first line always fits. Once a line does not fit, the page is full. */
    take(line: string) {
      bytes += Buffer.byteLength(line);
      const fits = !isFull && (lines === 0 || bytes <= mostPageBytes);
      if (fits) lines += 1;
      isFull ||= !fits || lines === limit;
      return fits;
    },
  };
}

interface LineQuery {
  readonly room: Room;
  readonly isWanted: (line: string) => boolean;
}

async function readNewest(dir: string, segments: readonly number[], wanted: LineQuery): Promise<RuntimePage> {
  const parts: string[][] = [];
  let cursor: StoredBatch | undefined;
  for (const segment of segments.toReversed()) {
    const part = await withSegment(dir, segment, (file) => lastLines(file, wanted));
    if (part === undefined) continue;
    cursor ??= { segment, offset: part.end };
    parts.unshift(part.lines);
    if (wanted.room.isFull) break;
  }
  return { lines: parts.flat().map(decodeLine), cursor: formatCursor(cursor ?? { segment: 0, offset: 0 }) };
}

async function readBehind(
  dir: string,
  segments: readonly number[],
  { after, ...wanted }: LineQuery & { after: StoredBatch },
): Promise<RuntimePage> {
  const lines: string[] = [];
  let cursor = after;
  for (const segment of segments.filter((number) => number >= after.segment)) {
    const from = segment === after.segment ? after.offset : 0;
    const part = await withSegment(dir, segment, (file) => firstLines(file, from, wanted));
    if (part === undefined) continue;
    lines.push(...part.lines);
    cursor = { segment, offset: part.end };
    if (wanted.room.isFull) break;
  }
  return { lines: lines.map(decodeLine), cursor: formatCursor(cursor) };
}

async function lastLines(file: FileHandle, { room, isWanted }: LineQuery): Promise<{ lines: string[]; end: number }> {
  const end = await endOfLines(file);
  const newestFirst: string[] = [];
  // Bytes before a block's first line feed belong to a line that starts in the preceding block.
  let rest: Buffer = Buffer.alloc(0);
  for (let start = end; start > 0 && !room.isFull;) {
    const from = Math.max(0, start - blockBytes);
    const block = Buffer.concat([await readRange(file, from, start), rest]);
    const feed = block.indexOf(lineFeed);
    const cut = from === 0 ? 0 : feed < 0 ? block.length : feed + 1;
    const found = splitLines(block.subarray(cut)).filter(isWanted);
    rest = Buffer.from(block.subarray(0, cut));
    for (let at = found.length - 1; at >= 0 && !room.isFull; at -= 1)
      if (room.take(found[at] as string)) newestFirst.push(found[at] as string);
    start = from;
  }
  return { lines: newestFirst.reverse(), end };
}

async function firstLines(
  file: FileHandle,
  from: number,
  { room, isWanted }: LineQuery,
): Promise<{ lines: string[]; end: number }> {
  const end = await endOfLines(file);
  const lines: string[] = [];
  let at = from;
  let rest: Buffer = Buffer.alloc(0);
  for (let read = from; read < end && !room.isFull;) {
    const block = await readRange(file, read, Math.min(end, read + blockBytes));
    if (block.length === 0) break;
    read += block.length;
    const bytes = Buffer.concat([rest, block]);
    for (const line of splitLines(bytes)) {
      const isTaken = isWanted(line);
      if (isTaken ? !room.take(line) : room.isFull) break;
      at += Buffer.byteLength(line) + 1;
      if (isTaken) lines.push(line);
    }
    rest = Buffer.from(bytes.subarray(bytes.lastIndexOf(lineFeed) + 1));
  }
  return { lines, end: at };
}

// Splits complete lines only; bytes after the last line feed belong to the next block.
function splitLines(bytes: Buffer): string[] {
  const text = bytes.subarray(0, bytes.lastIndexOf(lineFeed) + 1).toString("utf8");
  return text === "" ? [] : text.slice(0, -1).split("\n");
}

function decodeLine(line: string): RuntimeLine {
  try {
    const stored = JSON.parse(line) as Omit<RuntimeLine, "process"> & { process?: string };
    return { ...stored, process: stored.process ?? web };
  } catch {
    // A corrupt line must not make the rest of the log unreadable.
    return { at: new Date(0).toISOString(), deployment: 0, process: web, replica: 0, text: line };
  }
}

async function listSegments(dir: string): Promise<number[]> {
  const names = await readdir(dir).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return [];
    throw error;
  });
  return names.flatMap((name) => (/^\d+\.ndjson$/.test(name) ? [Number.parseInt(name, 10)] : [])).sort((a, b) => a - b);
}

/** Returns the segments that may hold lines from this time on; always includes the newest one. */
async function segmentsSince(dir: string, since: string | undefined): Promise<number[]> {
  const segments = await listSegments(dir);
  if (since === undefined) return segments;
  let first = 0;
  while (first < segments.length - 1 && (await writtenAt(dir, segments[first] as number)) < Date.parse(since))
    first += 1;
  return segments.slice(first);
}

/** Returns a segment's mtime in milliseconds; 0 when a rotation deleted it. */
async function writtenAt(dir: string, segment: number): Promise<number> {
  return stat(segmentFile(dir, segment)).then(
    ({ mtimeMs }) => mtimeMs,
    () => 0,
  );
}

async function withSegment<T>(
  dir: string,
  segment: number,
  work: (file: FileHandle) => Promise<T>,
): Promise<T | undefined> {
  const file = await open(segmentFile(dir, segment), "r").catch((error: NodeJS.ErrnoException) => {
    // A rotation deleted it after the folder was listed.
    if (error.code === "ENOENT") return undefined;
    throw error;
  });
  if (file === undefined) return undefined;
  try {
    return await work(file);
  } finally {
    await file.close();
  }
}

function segmentFile(dir: string, segment: number): string {
  return join(dir, `${String(segment).padStart(8, "0")}.ndjson`);
}

function formatCursor({ segment, offset }: StoredBatch): string {
  return `${segment}:${offset}`;
}

function parseCursor(cursor: string): StoredBatch | undefined {
  const match = /^(\d{1,10}):(\d{1,12})$/.exec(cursor);
  return match ? { segment: Number(match[1]), offset: Number(match[2]) } : undefined;
}

const atBegins = '{"at":"'.length;
const atEnds = atBegins + "2026-01-02T03:04:05.678Z".length;

/**
 * Returns a predicate that tells whether a stored line matches the query. `encodeLines` writes time, process type and replica before the
 * text, so the text can't forge them. A line is decoded only if its stored form contains the text: filtering 40 MB takes a fifth of a
 * second.
 */
function lineFilter(query: RuntimeChoice, textOf: (line: string) => string): (line: string) => boolean {
  const filters = [
    originFilter(query),
    timeFilter(query),
    textFilter(query, textOf),
    choiceFilter(query, textOf),
  ].filter((filter) => filter !== undefined);
  return (line) => filters.every((filter) => filter(line));
}

function originFilter({ process, replica }: RuntimeChoice) {
  if (replica === undefined && process === undefined) return undefined;
  const type = process === undefined ? '(?:"process":"[^"]*",)?' : process === web ? "" : `"process":"${process}",`;
  const head = new RegExp(`^\\{"at":"[^"]*","deployment":\\d+,${type}"replica":${replica ?? "\\d+"},"text":`);
  return (line: string) => head.test(line);
}

function timeFilter({ since, until }: Pick<RuntimeChoice, "since" | "until">) {
  if (since === undefined && until === undefined) return undefined;
  return (line: string) => {
    const at = line.slice(atBegins, atEnds);
    return (since === undefined || at >= since) && (until === undefined || at < until);
  };
}

function choiceFilter({ accepts }: RuntimeChoice, textOf: (line: string) => string) {
  return accepts && ((line: string) => accepts(textOf(line)));
}

function textFilter({ contains }: RuntimeChoice, textOf: (line: string) => string) {
  if (contains === undefined || contains === "") return undefined;
  const text = contains.toLowerCase();
  const stored = JSON.stringify(contains).slice(1, -1).toLowerCase();
  return (line: string) => line.toLowerCase().includes(stored) && textOf(line).toLowerCase().includes(text);
}
