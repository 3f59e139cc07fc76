import type { BuildTime } from "../../ports/log-store.ts";

const lineFeed = 0x0a;

/** A time at which lines were written; it applies from this line on. */
export interface LineTime {
  readonly line: number;
  readonly at: string;
}

/** Returns the times of the lines of a part of a log, which begins at a byte offset of the log. */
export function timesOfLines(text: string, offset: number, times: readonly BuildTime[]): LineTime[] {
  const bytes = Buffer.from(text);
  const found: LineTime[] = [];
  let line = 0;
  let place = 0;
  for (const { offset: from, at } of times) {
    if (bytes.length === 0 || from >= offset + bytes.length) break;
    while (place < from - offset) {
      place = bytes.indexOf(lineFeed, place) + 1;
      line += 1;
    }
    // The newest time before this part applies to its first line.
    if (found.at(-1)?.line === line) found.pop();
    found.push({ line, at });
  }
  return found;
}
