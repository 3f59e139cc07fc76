import type { LogStore } from "../../ports/log-store.ts";
import type { Context, Handlers } from "../context.ts";
import { livingProject } from "../projects/projects.ts";
import { selectNewestBuild } from "./queries.ts";
import { followLog } from "./follow.ts";
import { formatCursor, linesOf, newestWithin, parseCursor, type BuildCursor } from "./rules.ts";

const chunkBytes = 1024 * 1024;

export const logs: Handlers<"logs"> = {
  async list(ctx, { params, query }) {
    const project = await livingProject(ctx, params.slug);
    const { limit, source, replica } = query;
    const read = (after: string | undefined, lines: number) =>
      source === "build"
        ? listBuildLines(ctx, project.id, lines, after)
        : listRuntimeLines(ctx, project.id, { limit: lines, after, replica });
    if (!query.follow) return read(query.after, limit);
    const check = async () => void (await livingProject(ctx, params.slug));
    const after = ctx.lastEventId ?? query.after;
    return ctx.stream(followLog({ read, after, limit, signal: ctx.signal, check }));
  },
};

async function listRuntimeLines(
  ctx: Context<"logs.list">,
  projectId: string,
  { limit, after, replica }: { limit: number; after: string | undefined; replica: number | undefined },
) {
  const page = await ctx.world.ports.logStore.readRuntime(projectId, {
    limit,
    ...(after === undefined ? {} : { after }),
    ...(replica === undefined ? {} : { replica }),
  });
  return { source: "runtime" as const, lines: [...page.lines], next_cursor: page.cursor };
}

async function listBuildLines(ctx: Context<"logs.list">, projectId: string, limit: number, after: string | undefined) {
  const newest = await selectNewestBuild(ctx.tx, ctx.caller.org_id, projectId);
  if (newest === undefined) return { source: "build" as const, lines: [], next_cursor: null };
  const cursor = after === undefined ? undefined : parseCursor(after);
  // A cursor of an earlier build has nothing more to give: the newest one is read from its start.
  const from = cursor?.build_id === newest.id ? cursor.offset : 0;
  const page = await readNewestLines(ctx.world.ports.logStore, { build_id: newest.id, offset: from }, limit);
  const lines = page.lines.map((text) => ({ at: null, deployment: null, replica: null, text }));
  return { source: "build" as const, lines, next_cursor: formatCursor({ build_id: newest.id, offset: page.offset }) };
}

/** The last `limit` lines behind a place; a chunk at a time, because a log may be much larger than the answer. */
async function readNewestLines(
  logStore: LogStore,
  from: BuildCursor,
  limit: number,
): Promise<{ lines: readonly string[]; offset: number }> {
  let lines: readonly string[] = [];
  for (let offset = from.offset; ;) {
    const { text, next_offset } = await logStore.readBuild(from.build_id, offset, chunkBytes);
    if (next_offset === offset) return { lines, offset };
    lines = newestWithin([...lines, ...linesOf(text)], limit);
    offset = next_offset;
  }
}
