import { useEffect, useState } from "react";
import { ApiError, type Client } from "../../contract/client.ts";
import type { LogLine } from "../ui/log-view.tsx";
import { call, useClient } from "./api.ts";

const mostLines = 100_000;
const pausesMs = { first: 500, most: 8000 };

interface LogQuery {
  readonly slug: string;
  readonly source: "runtime" | "build";
  readonly replica: number | undefined;
  /** An instant, or a time before now such as `15m`. */
  readonly since: string | undefined;
  /** Until when; such a log is over, so it is read once. */
  readonly until: string | undefined;
  readonly limit: number;
}

interface LogState {
  readonly lines: readonly LogLine[];
  readonly loaded: boolean;
  readonly error: Error | null;
}

/** An application's log, followed. After a break it goes on behind the last line. */
export function useLog({ slug, source, replica, since, until, limit }: LogQuery): LogState {
  const client = useClient();
  const [state, setState] = useState<LogState>({ lines: [], loaded: false, error: null });
  useEffect(() => {
    const gone = new AbortController();
    let lines: LogLine[] = [];
    setState({ lines, loaded: false, error: null });
    const add = (more: readonly LogLine[]) => {
      if (gone.signal.aborted) return;
      lines = [...lines, ...more].slice(-mostLines);
      setState({ lines, loaded: true, error: null });
    };
    const fail = (error: Error) => setState({ lines, loaded: true, error });
    void follow({ client, query: { slug, source, replica, since, until, limit }, signal: gone.signal, add, fail });
    return () => gone.abort();
  }, [client, slug, source, replica, since, until, limit]);
  return state;
}

interface Following {
  readonly client: Client;
  readonly query: LogQuery;
  readonly signal: AbortSignal;
  readonly add: (lines: readonly LogLine[]) => void;
  readonly fail: (error: Error) => void;
}

async function follow({ client, query: { slug, ...query }, signal, add, fail }: Following): Promise<void> {
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
      fail(error as Error);
      if (error instanceof ApiError && error.status < 500 && error.status !== 429) return;
    }
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
    pauseMs = Math.min(pauseMs * 2, pausesMs.most);
  }
}
