import { setTimeout as sleep } from "node:timers/promises";
import type { Result } from "../../contract/routes.ts";
import { linkSignals } from "../../kit/link-signals.ts";
import type { Wakeups } from "../../store/wakeups.ts";
import type { Handlers, ServerEvent } from "../context.ts";
import { readEntries } from "./activity.ts";
import { selectChanges } from "./queries.ts";

export const activity: Handlers<"activity"> = {
  async list(ctx, { query }) {
    const { entries, next_cursor } = await readEntries(ctx, {}, query);
    return { activity: entries, next_cursor };
  },
  async changes(ctx, { query }) {
    const { org_id } = ctx.caller;
    const read = (after: string | undefined) => selectChanges(ctx.tx, ctx.caller, after);
    if (!query.follow) return read(query.after);
    const last = ctx.lastEventId;
    const after = last !== undefined && /^\d{1,18}$/.test(last) ? last : query.after;
    return ctx.stream(followChanges({ read, after, org_id, wakeups: ctx.platform.wakeups, signal: ctx.signal }));
  },
};

type Changes = Result<"activity.changes">;

interface FollowingChanges {
  readonly read: (after: string | undefined) => Promise<Changes>;
  readonly after: string | undefined;
  readonly org_id: string;
  readonly wakeups: Wakeups;
  readonly signal: AbortSignal;
}

// Changes come in bursts, and pages reload once per event; waiting this long merges a burst into one event.
const burstMs = 150;
// A change hidden by an older open transaction becomes visible without another wake-up, so poll as well.
const pollEveryMs = 2000;

/** Streams the organization's changes as an endless series of events. Each id is the cursor after it, so a reconnect misses nothing. */
async function* followChanges(options: FollowingChanges): AsyncGenerator<ServerEvent> {
  const { read, org_id, wakeups, signal } = options;
  let cursor = options.after;
  let wake = new AbortController();
  const stop = wakeups.on("changes", (id) => (id === org_id || id === "") && wake.abort());
  try {
    while (!signal.aborted) {
      wake = new AbortController();
      const found = await read(cursor);
      if (cursor === undefined || found.reset || found.changes.length > 0)
        yield { event: "changes", data: found, id: found.next_cursor };
      cursor = found.next_cursor;
      const either = linkSignals(signal, wake.signal);
      await sleep(pollEveryMs, undefined, { signal: either.signal }).catch(() => {});
      either.release();
      await sleep(burstMs, undefined, { signal }).catch(() => {});
    }
  } finally {
    stop();
  }
}
