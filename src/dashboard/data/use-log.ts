import { useEffect, useState } from "react";
import { ApiError, type Client } from "../../contract/client.ts";
import type { LogLevel } from "../../contract/log-level.ts";
import { limits } from "../../contract/limits.ts";
import type { LogLine } from "../ui/log-row.tsx";
import { call, useClient } from "./api.ts";

const mostLines = 100_000;
const pausesMs = { first: 500, most: 8000 };

interface LogQuery {
  readonly slug: string;
  readonly source: "runtime" | "build";
  readonly process: string | undefined;
  readonly replica: number | undefined;
  /** An instant, or a time before now such as `15m`. */
  readonly since: string | undefined;
  /** The end of the range. Such a log gets no new lines, so it is read once. */
  readonly until: string | undefined;
  /** Only lines of this level or a worse one. */
  readonly level: LogLevel | undefined;
  /** Only JSON lines with all of these fields, written as `name=value`. */
  readonly field: readonly string[] | undefined;
  readonly limit: number;
}

interface LogState {
  readonly lines: readonly LogLine[];
  /** The position of the first line. It rises when the oldest lines are dropped, and falls when older ones are loaded. */
  readonly first: number;
  readonly loaded: boolean;
  readonly error: Error | null;
  /** Loads the lines before the first one; undefined if there are none or the page is full. */
  readonly loadOlder: (() => void) | undefined;
  readonly isLoadingOlder: boolean;
}

const empty: LogState = {
  lines: [],
  first: 0,
  loaded: false,
  error: null,
  loadOlder: undefined,
  isLoadingOlder: false,
};

/** Follows an application's log. After an interruption it continues behind the last line. */
export function useLog(query: LogQuery): LogState {
  const client = useClient();
  const asked = JSON.stringify(query);
  const [found, setFound] = useState({ asked: "", state: empty });
  useEffect(() => {
    const gone = new AbortController();
    const set = (state: LogState) => !gone.signal.aborted && setFound({ asked, state });
    void followLog({ client, query: JSON.parse(asked) as LogQuery, signal: gone.signal, set });
    return () => gone.abort();
  }, [client, asked]);
  // A state found for another query has the lines of another log.
  return found.asked === asked ? found.state : empty;
}

interface Following {
  readonly client: Client;
  readonly query: LogQuery;
  readonly signal: AbortSignal;
  readonly set: (state: LogState) => void;
}

async function followLog({ client, query: { slug, ...query }, signal, set }: Following): Promise<void> {
  let state = empty;
  const change = (next: Partial<LogState>) => set((state = { ...state, ...next }));
  const add = (more: readonly LogLine[]) => {
    const all = [...state.lines, ...more];
    const excess = Math.max(0, all.length - mostLines);
    const lines = excess === 0 ? all : all.slice(excess);
    const older = query.source === "runtime" && state.lines.length === 0 ? { loadOlder } : {};
    change({ lines, first: state.first + excess, loaded: true, error: null, ...older });
  };
  const loadOlder = () => {
    const [before] = state.lines;
    if (state.isLoadingOlder || before?.at === null || before === undefined) return;
    change({ isLoadingOlder: true });
    // Lines of the same millisecond may be on both sides of the boundary.
    const shared = state.lines.findIndex(({ at }) => at !== before.at);
    const until = new Date(Date.parse(before.at) + 1).toISOString();
    const input = { params: { slug }, query: { ...query, limit: limits.log_lines, until }, signal };
    call(client, "logs.list", input).then(
      ({ lines: found }) => {
        const older = found.slice(0, found.length - (shared < 0 ? state.lines.length : shared));
        const lines = [...older, ...state.lines];
        const isAll = older.length === 0 || lines.length + limits.log_lines > mostLines;
        const place = { lines, first: state.first - older.length, isLoadingOlder: false };
        change(isAll ? { ...place, loadOlder: undefined } : place);
      },
      (error: Error) => change({ error, isLoadingOlder: false }),
    );
  };
  let after: string | undefined;
  let pauseMs = pausesMs.first;
  while (!signal.aborted) {
    try {
      const input = { params: { slug }, query: { ...query, after }, signal };
      if (query.until !== undefined) return add((await call(client, "logs.list", input)).lines);
      for await (const page of client.follow("logs.list", input)) {
        after = page.next_cursor ?? after;
        pauseMs = pausesMs.first;
        add(page.lines);
      }
    } catch (error) {
      if (signal.aborted) return;
      change({ loaded: true, error: error as Error });
      if (error instanceof ApiError && error.status < 500 && error.status !== 429) return;
    }
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
    pauseMs = Math.min(pauseMs * 2, pausesMs.most);
  }
}
