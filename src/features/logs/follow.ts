import { setTimeout as sleep } from "node:timers/promises";
import type { Result } from "../../contract/routes.ts";
import type { ServerEvent } from "../context.ts";

type LogPage = Result<"logs.list">;

export interface Following {
  /** Reads the newest lines, or the first ones after a cursor. */
  readonly read: (after: string | undefined, limit: number) => Promise<LogPage>;
  readonly after: string | undefined;
  /** How many of the newest lines to send first when there is no cursor. */
  readonly limit: number;
  readonly signal: AbortSignal;
  /** Throws a refusal when the log may no longer be followed. */
  readonly check: () => Promise<void>;
}

// An event must fit into memory once for every slow client: at most 200 lines of 10 kB.
const linesAtOnce = 200;
const pausesMs = { first: 200, most: 1000 };
const checkEveryMs = 10_000;
// The cursor before the first line: every line of a log that does not exist yet is new.
const beginning = "0";

/**
 * Streams a log as an endless series of events. Each event is a page, and its id the cursor after it, so a client that reconnects with its
 * last id misses nothing and gets nothing twice. No page is read ahead of a slow client, so each client costs one page of memory.
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
    // A full page means that more lines are already available.
    if (page.lines.length < linesAtOnce) await sleep(pauseMs, undefined, { signal }).catch(() => {});
  }
}

/**
 * Splits a page into events; only the first page can be larger than one event. The page's cursor points after its end, so only the last
 * event has an id.
 */
function* eventsOf(page: LogPage): Generator<ServerEvent> {
  const last = Math.max(0, Math.ceil(page.lines.length / linesAtOnce) - 1) * linesAtOnce;
  for (let from = 0; from < last; from += linesAtOnce) {
    const lines = page.lines.slice(from, from + linesAtOnce);
    yield { event: "lines", data: { ...page, lines, next_cursor: null } };
  }
  const data = { ...page, lines: page.lines.slice(last) };
  yield { event: "lines", data, ...(page.next_cursor === null ? {} : { id: page.next_cursor }) };
}
