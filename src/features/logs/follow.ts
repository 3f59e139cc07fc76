import { setTimeout as sleep } from "node:timers/promises";
import type { Result } from "../../contract/routes.ts";
import type { ServerEvent } from "../context.ts";

type LogPage = Result<"logs.list">;

/** How a log is followed. */
export interface Following {
  /** The newest lines, or the first ones behind a cursor. */
  readonly read: (after: string | undefined, limit: number) => Promise<LogPage>;
  readonly after: string | undefined;
  /** How many of the newest lines come first when there is no cursor. */
  readonly limit: number;
  readonly signal: AbortSignal;
  /** Throws the refusal to end with when the log may no longer be followed. */
  readonly check: () => Promise<void>;
}

// An event has to fit into memory for every client that reads slowly: at most 200 lines of 10 kB.
const linesAtOnce = 200;
const pausesMs = { first: 200, most: 1000 };
const checkEveryMs = 10_000;
// Behind no line at all: of a log that does not exist yet every line is news.
const beginning = "0";

/**
 * A log as events that do not end: each is a page, and its id the cursor behind it. Nothing is read ahead of a client that reads slowly,
 * so a client costs one page of memory. A client that comes back with its last id misses nothing and gets nothing twice.
 */
export async function* followLog({ read, after, limit, signal, check }: Following): AsyncGenerator<ServerEvent> {
  let cursor = after;
  let pauseMs: number = pausesMs.first;
  let checkedAtMs = performance.now();
  while (!signal.aborted) {
    const page = await read(cursor, cursor === undefined ? limit : linesAtOnce);
    const isNews = page.lines.length > 0 || cursor === undefined;
    if (isNews) yield* eventsOf(page);
    cursor = page.next_cursor ?? cursor ?? beginning;
    pauseMs = page.lines.length > 0 ? pausesMs.first : Math.min(pauseMs * 1.5, pausesMs.most);
    if (performance.now() - checkedAtMs > checkEveryMs) {
      await check();
      checkedAtMs = performance.now();
    }
    // A full page means that there is more already.
    if (page.lines.length < linesAtOnce) await sleep(pauseMs, undefined, { signal }).catch(() => {});
  }
}

/** Only the first page can be longer than an event ought to be. Its cursor stands behind its end, so the parts before it carry none. */
function* eventsOf(page: LogPage): Generator<ServerEvent> {
  const last = Math.max(0, Math.ceil(page.lines.length / linesAtOnce) - 1) * linesAtOnce;
  for (let from = 0; from < last; from += linesAtOnce) {
    const lines = page.lines.slice(from, from + linesAtOnce);
    yield { event: "lines", data: { ...page, lines, next_cursor: null } };
  }
  const data = { ...page, lines: page.lines.slice(last) };
  yield { event: "lines", data, ...(page.next_cursor === null ? {} : { id: page.next_cursor }) };
}
