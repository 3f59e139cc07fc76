import { hasFields } from "../../contract/log-fields.ts";
import { isAtLeast, levelOf, type LogLevel } from "../../contract/log-level.ts";

export interface BuildCursor {
  readonly build_id: string;
  readonly offset: number;
}

export function formatCursor({ build_id, offset }: BuildCursor): string {
  return `${build_id}:${offset}`;
}

export function parseCursor(text: string): BuildCursor | undefined {
  const found = /^(bld_[0-9a-z]{1,40}):(\d{1,12})$/.exec(text);
  return found ? { build_id: found[1] as string, offset: Number(found[2]) } : undefined;
}

export function isCursorOf(source: "build" | "runtime", text: string): boolean {
  return source === "build" ? parseCursor(text) !== undefined : /^\d{1,10}:\d{1,12}$/.test(text);
}

// The same size as a page of an application's log.
const mostPageBytes = 2 * 1024 * 1024;

/** Returns the newest lines that fit into a response: at most `limit`, 2 MiB in total as JSON, and at least one. */
export function newestWithin(lines: readonly string[], limit: number): readonly string[] {
  let bytes = 0;
  let from = lines.length;
  while (from > 0 && lines.length - from < limit) {
    bytes += Buffer.byteLength(JSON.stringify(lines[from - 1]));
    if (bytes > mostPageBytes && from < lines.length) break;
    from -= 1;
  }
  return lines.slice(from);
}

/** Returns the first lines that fit into a response, with the same limits. */
export function firstWithin(lines: readonly string[], limit: number): readonly string[] {
  return newestWithin(lines.toReversed(), limit).toReversed();
}

export interface LineFilters {
  readonly grep?: string | undefined;
  readonly level?: LogLevel | undefined;
  readonly field?: readonly string[] | undefined;
}

/** Returns a filter for lines that contain a text, ignoring case, name a level or a worse one, and have all fields; without any it accepts every line. */
export function lineFilter({ grep, level, field }: LineFilters): (line: string) => boolean {
  const text = grep?.toLowerCase();
  return (line) =>
    (text === undefined || line.toLowerCase().includes(text)) &&
    (level === undefined || isAtLeast(levelOf(line), level)) &&
    (field === undefined || hasFields(line, field));
}

const daySeconds = 86_400;
const partLengths = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, daySeconds];

/** Counts lines by time, in at most `most` parts of a length that people know, each but the first beginning at a multiple of it. `most` is at least 2. */
export function createPartCounts({ from, until }: { readonly from: Date; readonly until: Date }, most: number) {
  const [firstMs, lastMs] = [from.getTime(), until.getTime() - 1];
  const placesOf = (seconds: number) =>
    [firstMs, lastMs].map((ms) => Math.floor(ms / seconds / 1000)) as [number, number];
  const fits = (seconds: number) => placesOf(seconds)[1] - placesOf(seconds)[0] < most;
  let part_seconds = partLengths.find(fits) ?? daySeconds;
  while (!fits(part_seconds)) part_seconds *= 2;
  const [first, last] = placesOf(part_seconds);
  const parts = Array.from({ length: last - first + 1 }, (_, index) => ({
    at: new Date(Math.max(firstMs, (first + index) * part_seconds * 1000)).toISOString(),
    ...{ lines: 0, errors: 0, warnings: 0 },
  }));
  const total = { lines: 0, errors: 0, warnings: 0 };
  return {
    add(at: string, level: LogLevel | null): void {
      const part = parts[Math.floor(Date.parse(at) / part_seconds / 1000) - first];
      for (const counts of part === undefined ? [] : [part, total]) {
        counts.lines += 1;
        if (level === "error") counts.errors += 1;
        if (level === "warn") counts.warnings += 1;
      }
    },
    result: () => ({ from: from.toISOString(), until: until.toISOString(), part_seconds, ...total, parts }),
  };
}

export function linesOf(text: string): string[] {
  const lines = text.split("\n");
  if (lines.at(-1) === "") lines.pop();
  return lines;
}

export function bytesOf(lines: readonly string[]): number {
  return lines.reduce((sum, line) => sum + Buffer.byteLength(line) + 1, 0);
}
