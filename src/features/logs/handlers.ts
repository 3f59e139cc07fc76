import type { Query } from "../../contract/routes.ts";
import type { Context, Handlers } from "../context.ts";
import { livingProject } from "../projects/projects.ts";
import { isLogFinished } from "../builds/builds.ts";
import { selectBuildOf, selectNewestBuild } from "./queries.ts";
import { followLog } from "./follow.ts";
import { readFirstLines, readNewestLines, type Part, type Wanted } from "./read-build.ts";
import { formatCursor, instantOf, isCursorOf, lineFilter, parseCursor, type BuildCursor } from "./rules.ts";

export const logs: Handlers<"logs"> = {
  async list(ctx, { params, query }) {
    const { project } = ctx;
    const { limit, source } = query;
    const after = query.follow ? (ctx.lastEventId ?? query.after) : query.after;
    if (after !== undefined && !isCursorOf(source, after))
      return invalid(ctx, "after", "use the next_cursor of an earlier response with the same source");
    if (query.until !== undefined && query.follow)
      return invalid(ctx, "until", "cannot be combined with `follow=true`");
    if (source === "build" && (query.since ?? query.until) !== undefined)
      return invalid(
        ctx,
        query.since === undefined ? "until" : "since",
        "cannot be used here: lines of a build have no time",
      );
    const read = (after: string | undefined, lines: number) =>
      source === "build"
        ? listBuildLines(ctx, project.id, { limit: lines, after, grep: query.grep })
        : listRuntimeLines(ctx, project.id, { query, limit: lines, after });
    if (!query.follow) return read(after, limit);
    const check = async () => void (await livingProject(ctx.tx, ctx.project.org_id, params.slug));
    return ctx.stream(followLog({ read, after, limit, signal: ctx.signal, check }));
  },
};

function invalid(ctx: Context<"logs.list">, parameter: string, message: string): never {
  return ctx.fail("invalid_request", {
    error: `${parameter}: ${message}`,
    details: [{ path: parameter, message }],
  });
}

interface RuntimeLines {
  readonly query: Query<"logs.list">;
  readonly limit: number;
  readonly after: string | undefined;
}

async function listRuntimeLines(ctx: Context<"logs.list">, projectId: string, { query, limit, after }: RuntimeLines) {
  const { process, replica, since, until, grep } = query;
  const page = await ctx.platform.ports.logStore.readRuntime(projectId, {
    limit,
    ...(after === undefined ? {} : { after }),
    ...(process === undefined ? {} : { process }),
    ...(replica === undefined ? {} : { replica }),
    ...(since === undefined ? {} : { since: instantOf(since, ctx.now) }),
    ...(until === undefined ? {} : { until: instantOf(until, ctx.now) }),
    ...(grep === undefined ? {} : { contains: grep }),
  });
  return { source: "runtime" as const, lines: [...page.lines], next_cursor: page.cursor };
}

interface BuildLines {
  readonly limit: number;
  readonly after: string | undefined;
  readonly grep: string | undefined;
}

async function listBuildLines(ctx: Context<"logs.list">, projectId: string, { limit, after, grep }: BuildLines) {
  const { logStore } = ctx.platform.ports;
  const wanted = { limit, isWanted: lineFilter(grep) };
  const newest = await selectNewestBuild(ctx.tx, ctx.caller.org_id, projectId);
  if (newest === undefined) return { source: "build" as const, lines: [], next_cursor: null };
  if (after === undefined) return pageOf(newest.id, await readNewestLines(logStore, newest.id, wanted));
  const cursor = parseCursor(after);
  if (cursor?.build_id === newest.id) return pageOf(newest.id, await readFirstLines(logStore, cursor, wanted));
  const rest = cursor && (await readRestOfEarlier(ctx, projectId, cursor, wanted));
  return rest ?? pageOf(newest.id, await readFirstLines(logStore, { build_id: newest.id, offset: 0 }, wanted));
}

/** Reads what a cursor has left in a build that is no longer the newest; returns undefined once that log is complete and read. */
async function readRestOfEarlier(ctx: Context<"logs.list">, projectId: string, from: BuildCursor, wanted: Wanted) {
  const earlier = await selectBuildOf(ctx.tx, ctx.caller.org_id, projectId, from.build_id);
  if (earlier === undefined) return undefined;
  // Query this before reading the log, so that no line can be added in between.
  const finished = await isLogFinished(ctx.tx, ctx.caller.org_id, earlier);
  const rest = await readFirstLines(ctx.platform.ports.logStore, from, wanted);
  return finished && rest.lines.length === 0 ? undefined : pageOf(earlier.id, rest);
}

function pageOf(build_id: string, { lines, offset }: Part) {
  const next_cursor = formatCursor({ build_id, offset });
  return {
    source: "build" as const,
    lines: lines.map((text) => ({ at: null, deployment: null, process: null, replica: null, text })),
    next_cursor,
  };
}
