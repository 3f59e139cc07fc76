/** Where reading of a build's log stopped. */
export interface BuildCursor {
  readonly build_id: string;
  readonly offset: number;
}

/** A place in a build's log as a cursor's text. */
export function formatCursor({ build_id, offset }: BuildCursor): string {
  return `${build_id}:${offset}`;
}

/** The place that a cursor's text names; undefined for a text that is no such cursor. */
export function parseCursor(text: string): BuildCursor | undefined {
  const found = /^(bld_[0-9a-z]{1,40}):(\d{1,12})$/.exec(text);
  return found ? { build_id: found[1] as string, offset: Number(found[2]) } : undefined;
}

/** Whether a text can be a cursor of this source. */
export function isCursorOf(source: "build" | "runtime", text: string): boolean {
  return source === "build" ? parseCursor(text) !== undefined : /^\d{1,10}:\d{1,12}$/.test(text);
}

// As much as a page of an application's log takes.
const mostPageBytes = 2 * 1024 * 1024;

/** The newest lines that an answer takes: at most `limit`, of 2 MiB together as JSON, and one at least. */
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

/** The first lines that an answer takes, by the same measure. */
export function firstWithin(lines: readonly string[], limit: number): readonly string[] {
  return newestWithin(lines.toReversed(), limit).toReversed();
}

const unitMs = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** The instant that a parameter names, as lines carry it; a duration counts back from now. */
export function instantOf(text: string, now: Date): string {
  const duration = /^(\d+)([smhd])$/.exec(text);
  const ms = duration
    ? now.getTime() - Number(duration[1]) * unitMs[duration[2] as keyof typeof unitMs]
    : Date.parse(text);
  return new Date(ms).toISOString();
}

/** Whether a line contains a text, in upper or lower case; without a text every line does. */
export function lineFilter(grep: string | undefined): (line: string) => boolean {
  const text = grep?.toLowerCase();
  return (line) => text === undefined || line.toLowerCase().includes(text);
}

/** The complete lines of a log's text. */
export function linesOf(text: string): string[] {
  const lines = text.split("\n");
  if (lines.at(-1) === "") lines.pop();
  return lines;
}

/** How many bytes complete lines take in a log. */
export function bytesOf(lines: readonly string[]): number {
  return lines.reduce((sum, line) => sum + Buffer.byteLength(line) + 1, 0);
}
