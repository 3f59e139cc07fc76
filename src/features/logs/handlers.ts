import { setTimeout as sleep } from "node:timers/promises";
import { levelOf } from "../../contract/log-level.ts";
import type { Query, Result } from "../../contract/routes.ts";
import { instantOf } from "../../kit/instant.ts";
import type { LogStore, RuntimeChoice } from "../../ports/log-store.ts";
import { isLogFinished } from "../builds/builds.ts";
import type { Context, Handlers, ServerEvent } from "../context.ts";
import { livingProject } from "../projects/projects.ts";
import * as rules from "./rules.ts";
import type { Db, Tx } from "../../store/database.ts";

export const logs: Handlers<"logs"> = {
  async list(ctx, { params, query }) {
    const { project } = ctx;
    const { limit, source } = query;
    const after = query.follow ? (ctx.lastEventId ?? query.after) : query.after;
    if (after !== undefined && !rules.isCursorOf(source, after))
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
        ? listBuildLines(ctx, project.id, { filters: query, limit: lines, after })
        : listRuntimeLines(ctx, project.id, { query, limit: lines, after });
    if (!query.follow) return read(after, limit);
    const check = async () => void (await livingProject(ctx.tx, ctx.project.org_id, params.slug));
    return ctx.stream(followLog({ read, after, limit, signal: ctx.signal, check }));
  },

  async counts(ctx, { query }) {
    const choice = choiceOf(query, ctx.now);
    const until = new Date(choice.until ?? ctx.now);
    const from = new Date(choice.since ?? until.getTime() - usualRangeMs);
    if (from >= until) return invalid(ctx, "since", "must be before `until`, which is now if it is left out");
    const counts = rules.createPartCounts({ from, until }, query.parts);
    const range = { since: from.toISOString(), until: until.toISOString() };
    await ctx.platform.ports.logStore.visitRuntime(ctx.project.id, { ...choice, ...range }, ({ at, text }) => {
      counts.add(at, levelOf(text));
      return !ctx.signal.aborted;
    });
    return counts.result();
  },
};

const usualRangeMs = 3_600_000;

function invalid(ctx: Pick<Context<"logs.list">, "fail">, parameter: string, message: string): never {
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
  const page = await ctx.platform.ports.logStore.readRuntime(projectId, {
    limit,
    ...(after === undefined ? {} : { after }),
    ...choiceOf(query, ctx.now),
  });
  return {
    source: "runtime" as const,
    lines: page.lines.map((line) => ({ ...line, level: levelOf(line.text) })),
    next_cursor: page.cursor,
  };
}

function choiceOf(query: Omit<Query<"logs.counts">, "parts">, now: Date): RuntimeChoice {
  const { process, replica, since, until, grep, level, field } = query;
  return {
    ...(process === undefined ? {} : { process }),
    ...(replica === undefined ? {} : { replica }),
    ...(since === undefined ? {} : { since: instantOf(since, now) }),
    ...(until === undefined ? {} : { until: instantOf(until, now) }),
    ...(grep === undefined ? {} : { contains: grep }),
    ...((level ?? field) === undefined ? {} : { accepts: rules.lineFilter({ level, field }) }),
  };
}

interface BuildLines {
  readonly limit: number;
  readonly after: string | undefined;
  readonly filters: rules.LineFilters;
}

async function listBuildLines(ctx: Context<"logs.list">, projectId: string, { limit, after, filters }: BuildLines) {
  const { logStore } = ctx.platform.ports;
  const wanted = { limit, isWanted: rules.lineFilter(filters) };
  const newest = await selectNewestBuild(ctx.tx, ctx.caller.org_id, projectId);
  if (newest === undefined) return { source: "build" as const, lines: [], next_cursor: null };
  if (after === undefined) return pageOf(newest.id, await readNewestLines(logStore, newest.id, wanted));
  const cursor = rules.parseCursor(after);
  if (cursor?.build_id === newest.id) return pageOf(newest.id, await readFirstLines(logStore, cursor, wanted));
  const rest = cursor && (await readRestOfEarlier(ctx, projectId, cursor, wanted));
  return rest ?? pageOf(newest.id, await readFirstLines(logStore, { build_id: newest.id, offset: 0 }, wanted));
}

/** Reads what a cursor has left in a build that is no longer the newest; returns undefined once that log is complete and read. */
async function readRestOfEarlier(
  ctx: Context<"logs.list">,
  projectId: string,
  from: rules.BuildCursor,
  wanted: Wanted,
) {
  const earlier = await selectBuildOf(ctx.tx, ctx.caller.org_id, projectId, from.build_id);
  if (earlier === undefined) return undefined;
  // Query this before reading the log, so that no line can be added in between.
  const finished = await isLogFinished(ctx.tx, ctx.caller.org_id, earlier);
  const rest = await readFirstLines(ctx.platform.ports.logStore, from, wanted);
  return finished && rest.lines.length === 0 ? undefined : pageOf(earlier.id, rest);
}

function pageOf(build_id: string, { lines, offset }: Part) {
  const next_cursor = rules.formatCursor({ build_id, offset });
  return {
    source: "build" as const,
    lines: lines.map((text) => ({
      at: null,
      deployment: null,
      process: null,
      replica: null,
      level: levelOf(text),
      text,
    })),
    next_cursor,
  };
}

type LogPage = Result<"logs.list">;

interface Following {
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
async function* followLog({ read, after, limit, signal, check }: Following): AsyncGenerator<ServerEvent> {
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

/** Splits a page into events; only the first page can exceed one. Only the last event has the page's cursor as its id. */
function* eventsOf(page: LogPage): Generator<ServerEvent> {
  const last = Math.max(0, Math.ceil(page.lines.length / linesAtOnce) - 1) * linesAtOnce;
  for (let from = 0; from < last; from += linesAtOnce) {
    const lines = page.lines.slice(from, from + linesAtOnce);
    yield { event: "lines", data: { ...page, lines, next_cursor: null } };
  }
  const data = { ...page, lines: page.lines.slice(last) };
  yield { event: "lines", data, ...(page.next_cursor === null ? {} : { id: page.next_cursor }) };
}

const chunkBytes = 1024 * 1024;

/** How many lines of a build's log to read, and which. */
interface Wanted {
  readonly limit: number;
  readonly isWanted: (line: string) => boolean;
}

interface Part {
  readonly lines: readonly string[];
  /** The byte offset after the last line. */
  readonly offset: number;
}

/** Returns the last lines of a build's log. Reads chunk by chunk, because a log may be much larger than the response. */
async function readNewestLines(logStore: LogStore, buildId: string, { limit, isWanted }: Wanted): Promise<Part> {
  let lines: readonly string[] = [];
  for (let offset = 0; ;) {
    const { text, next_offset } = await logStore.readBuild(buildId, offset, chunkBytes);
    if (next_offset === offset) return { lines, offset };
    lines = rules.newestWithin([...lines, ...rules.linesOf(text).filter(isWanted)], limit);
    offset = next_offset;
  }
}

/** Returns the first lines after a position, so that a client that continues from there misses none. */
async function readFirstLines(logStore: LogStore, from: rules.BuildCursor, { limit, isWanted }: Wanted): Promise<Part> {
  let lines: readonly string[] = [];
  for (let { offset } = from; ;) {
    const { text, next_offset } = await logStore.readBuild(from.build_id, offset, chunkBytes);
    if (next_offset === offset) return { lines, offset };
    const read = rules.linesOf(text);
    const places = read.flatMap((line, place) => (isWanted(line) ? [place] : []));
    const taken = rules.firstWithin([...lines, ...places.map((place) => read[place] as string)], limit);
    const excess = places[taken.length - lines.length];
    if (excess !== undefined) return { lines: taken, offset: offset + rules.bytesOf(read.slice(0, excess)) };
    lines = taken;
    offset = next_offset;
  }
}

async function selectNewestBuild(db: Db | Tx, orgId: string, projectId: string) {
  return db
    .selectFrom("build")
    .select("id")
    .where(({ and }) => and({ org_id: orgId, project_id: projectId }))
    .orderBy("number", "desc")
    .limit(1)
    .executeTakeFirst();
}

async function selectBuildOf(db: Db | Tx, orgId: string, projectId: string, id: string) {
  return db
    .selectFrom("build")
    .select(["id", "status"])
    .where(({ and }) => and({ org_id: orgId, project_id: projectId, id }))
    .executeTakeFirst();
}
