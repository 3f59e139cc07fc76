import { readEntries } from "../activity/activity.ts";
import type { Handlers } from "../context.ts";

export const timeline: Handlers<"timeline"> = {
  async list(ctx, { query }) {
    const { entries, next_cursor } = await readEntries(ctx, { project_id: ctx.project.id }, query);
    return { timeline: entries, next_cursor };
  },
};
