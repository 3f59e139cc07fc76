import type { LogStore } from "../../ports/log-store.ts";
import type { Context, Handlers } from "../context.ts";
import { livingProject } from "../projects/projects.ts";
import { isLogFinished } from "../builds/builds.ts";
import { selectBuildOf, selectNewestBuild } from "./queries.ts";
import { followLog } from "./follow.ts";
import {
  bytesOf,
  firstWithin,
  formatCursor,
  isCursorOf,
  linesOf,
  newestWithin,
  parseCursor,
  type BuildCursor,
} from "./rules.ts";

const chunkBytes = 1024 * 1024;

export const logs: Handlers<"logs"> = {
  async list(ctx, { params, query }) {
    const { project } = ctx;
    const { limit, source, process, replica } = query;
    const after = query.follow ? (ctx.lastEventId ?? query.after) : query.after;
    if (after !== undefined && !isCursorOf(source, after)) return wrongCursor(ctx);
    const read = (after: string | undefined, lines: number) =>
      source === "build"
        ? listBuildLines(ctx, project.id, lines, after)
        : listRuntimeLines(ctx, project.id, { limit: lines, after, process, replica });
    if (!query.follow) return read(after, limit);
    const check = async () => void (await livingProject(ctx.tx, ctx.project.org_id, params.slug));
    return ctx.stream(followLog({ read, after, limit, signal: ctx.signal, check }));
  },
};

function wrongCursor(ctx: Context<"logs.list">): never {
  const message = "use the next_cursor of an earlier answer with the same source";
  return ctx.fail("invalid_request", { error: `after: ${message}`, details: [{ path: "after", message }] });
}

interface RuntimeLines {
  readonly limit: number;
  readonly after: string | undefined;
  readonly process: string | undefined;
  readonly replica: number | undefined;
}

async function listRuntimeLines(
  ctx: Context<"logs.list">,
  projectId: string,
  { limit, after, process, replica }: RuntimeLines,
) {
  const page = await ctx.platform.ports.logStore.readRuntime(projectId, {
    limit,
    ...(after === undefined ? {} : { after }),
    ...(process === undefined ? {} : { process }),
    ...(replica === undefined ? {} : { replica }),
  });
  return { source: "runtime" as const, lines: [...page.lines], next_cursor: page.cursor };
}

async function listBuildLines(ctx: Context<"logs.list">, projectId: string, limit: number, after: string | undefined) {
  const { logStore } = ctx.platform.ports;
  const newest = await selectNewestBuild(ctx.tx, ctx.caller.org_id, projectId);
  if (newest === undefined) return { source: "build" as const, lines: [], next_cursor: null };
  if (after === undefined) return pageOf(newest.id, await readNewestLines(logStore, newest.id, limit));
  const cursor = parseCursor(after);
  if (cursor?.build_id === newest.id) return pageOf(newest.id, await readFirstLines(logStore, cursor, limit));
  const rest = cursor && (await readRestOfEarlier(ctx, projectId, cursor, limit));
  return rest ?? pageOf(newest.id, await readFirstLines(logStore, { build_id: newest.id, offset: 0 }, limit));
}

/** What a build that is no longer the newest has behind a cursor; undefined once nothing more comes of it. */
async function readRestOfEarlier(ctx: Context<"logs.list">, projectId: string, from: BuildCursor, limit: number) {
  const earlier = await selectBuildOf(ctx.tx, ctx.caller.org_id, projectId, from.build_id);
  if (earlier === undefined) return undefined;
  // Asked before the log is read, so that no line comes between the two.
  const finished = await isLogFinished(ctx.tx, ctx.caller.org_id, earlier);
  const rest = await readFirstLines(ctx.platform.ports.logStore, from, limit);
  return finished && rest.lines.length === 0 ? undefined : pageOf(earlier.id, rest);
}

interface Part {
  readonly lines: readonly string[];
  /** Behind the last line. */
  readonly offset: number;
}

function pageOf(build_id: string, { lines, offset }: Part) {
  const next_cursor = formatCursor({ build_id, offset });
  return {
    source: "build" as const,
    lines: lines.map((text) => ({ at: null, deployment: null, process: null, replica: null, text })),
    next_cursor,
  };
}

/** The last `limit` lines of a build's log; a chunk at a time, because a log may be much larger than the answer. */
async function readNewestLines(logStore: LogStore, buildId: string, limit: number): Promise<Part> {
  let lines: readonly string[] = [];
  for (let offset = 0; ;) {
    const { text, next_offset } = await logStore.readBuild(buildId, offset, chunkBytes);
    if (next_offset === offset) return { lines, offset };
    lines = newestWithin([...lines, ...linesOf(text)], limit);
    offset = next_offset;
  }
}

/** The first lines behind a place, so that nobody who reads on misses one. */
async function readFirstLines(logStore: LogStore, from: BuildCursor, limit: number): Promise<Part> {
  let lines: readonly string[] = [];
  for (let { offset } = from; ;) {
    const { text, next_offset } = await logStore.readBuild(from.build_id, offset, chunkBytes);
    if (next_offset === offset) return { lines, offset };
    const all = [...lines, ...linesOf(text)];
    const taken = firstWithin(all, limit);
    if (taken.length < all.length) return { lines: taken, offset: offset + bytesOf(taken.slice(lines.length)) };
    lines = taken;
    offset = next_offset;
  }
}
