import { readEntries } from "../activity/activity.ts";
import type { Handlers } from "../context.ts";
import { findProject } from "../projects/projects.ts";

export const timeline: Handlers<"timeline"> = {
  // Of a deleted project too: what happened to it is how one finds out who deleted it.
  async list(ctx, { params, query }) {
    const project = await findProject(ctx.tx, ctx.caller, params.slug);
    if (project === undefined) return ctx.fail("not_found");
    const { entries, next_cursor } = await readEntries(ctx, { project_id: project.id }, query);
    return { timeline: entries, next_cursor };
  },
};
