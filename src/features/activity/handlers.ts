import type { Handlers } from "../context.ts";
import { readEntries } from "./activity.ts";
import { followChanges } from "./follow-changes.ts";
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
