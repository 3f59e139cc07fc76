import { isAtLeast, levelOf, type LogLevel } from "../../contract/log-level.ts";

export interface BuildCursor {
  readonly build_id: string;
  readonly offset: number;
}

export function formatCursor({ build_id, offset }: BuildCursor): string {
  return `${build_id}:${offset}`;
}

/** Parses a cursor; returns undefined when it is malformed. */
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

/** Returns a filter for lines that contain a text, ignoring case, and name a level or a worse one; without either it accepts every line. */
export function lineFilter(grep: string | undefined, level?: LogLevel): (line: string) => boolean {
  const text = grep?.toLowerCase();
  return (line) =>
    (text === undefined || line.toLowerCase().includes(text)) &&
    (level === undefined || isAtLeast(levelOf(line), level));
}

export function linesOf(text: string): string[] {
  const lines = text.split("\n");
  if (lines.at(-1) === "") lines.pop();
  return lines;
}

/** Returns how many bytes these complete lines take in a log. */
export function bytesOf(lines: readonly string[]): number {
  return lines.reduce((sum, line) => sum + Buffer.byteLength(line) + 1, 0);
}
