import type { LogStore } from "../../ports/log-store.ts";
import { bytesOf, firstWithin, linesOf, newestWithin, type BuildCursor } from "./rules.ts";

const chunkBytes = 1024 * 1024;

/** How many lines of a build's log to read, and which. */
export interface Wanted {
  readonly limit: number;
  readonly isWanted: (line: string) => boolean;
}

export interface Part {
  readonly lines: readonly string[];
  /** The byte offset after the last line. */
  readonly offset: number;
}

/** Returns the last lines of a build's log. Reads chunk by chunk, because a log may be much larger than the response. */
export async function readNewestLines(logStore: LogStore, buildId: string, { limit, isWanted }: Wanted): Promise<Part> {
  let lines: readonly string[] = [];
  for (let offset = 0; ;) {
    const { text, next_offset } = await logStore.readBuild(buildId, offset, chunkBytes);
    if (next_offset === offset) return { lines, offset };
    lines = newestWithin([...lines, ...linesOf(text).filter(isWanted)], limit);
    offset = next_offset;
  }
}

/** Returns the first lines after a position, so that a client that continues from there misses none. */
export async function readFirstLines(
  logStore: LogStore,
  from: BuildCursor,
  { limit, isWanted }: Wanted,
): Promise<Part> {
  let lines: readonly string[] = [];
  for (let { offset } = from; ;) {
    const { text, next_offset } = await logStore.readBuild(from.build_id, offset, chunkBytes);
    if (next_offset === offset) return { lines, offset };
    const read = linesOf(text);
    const places = read.flatMap((line, place) => (isWanted(line) ? [place] : []));
    const taken = firstWithin([...lines, ...places.map((place) => read[place] as string)], limit);
    const excess = places[taken.length - lines.length];
    if (excess !== undefined) return { lines: taken, offset: offset + bytesOf(read.slice(0, excess)) };
    lines = taken;
    offset = next_offset;
  }
}
