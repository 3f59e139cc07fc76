import type { BuildTime } from "../../ports/log-store.ts";

const lineFeed = 0x0a;

/** When lines were written: those from the line with this index on. */
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
    // Of the times before this part, the newest one is that of its first line.
    if (found.at(-1)?.line === line) found.pop();
    found.push({ line, at });
  }
  return found;
}
