import { chooseBranch } from "./agents-preview.ts";
import { limits } from "../../contract/limits.ts";
import { pageOf } from "../../kit/page.ts";
import type { BuildTime } from "../../ports/log-store.ts";
import type { Context, Handlers } from "../context.ts";
import { requireRoomForBuild } from "../disk/disk.ts";
import { aheadOf } from "./ahead.ts";
import { isLogFinished } from "./builds.ts";
import { cancelWork, cancelled } from "./cancel.ts";
import { listBuilds, selectBuild, selectOutcome } from "./queries.ts";
import * as source from "./source.ts";
import { uploadToPreview } from "./upload-to-preview.ts";

const mostLogBytes = 1024 * 1024;

export const builds: Handlers<"builds"> = {
  async list(ctx, { query }) {
    const rows = await listBuilds(ctx.tx, ctx.project.org_id, ctx.project.id, query);
    const { shown, next_cursor } = pageOf(rows, query.limit, ({ number }) => String(number));
    return { builds: shown, next_cursor };
  },

  async get(ctx, { params }) {
    const found = await selectBuild(ctx.tx, ctx.caller.org_id, params.id);
    if (found === undefined) return ctx.fail("not_found");
    return { ...found, deployment: (await selectOutcome(ctx.tx, ctx.caller.org_id, found.id)) ?? null };
  },

  async cancel(ctx, { params }) {
    const { org_id } = ctx.caller;
    const { id } = params;
    const found = await selectBuild(ctx.tx, org_id, id);
    if (found === undefined) return ctx.fail("not_found");
    if (!(await cancelWork(ctx.tx, ctx.platform.wakeups, { org_id, id }, cancelled)))
      return ctx.fail("conflict", {
        error: `Build #${found.number} has already ended; there is nothing to cancel.`,
        hint: "Its deployment stays. To undo it, roll back to the deployment before it.",
      });
    ctx.note({ project_id: found.project_id, target: id, detail: { number: found.number } });
    const build = (await selectBuild(ctx.tx, org_id, id)) ?? found;
    return { ...build, deployment: (await selectOutcome(ctx.tx, org_id, id)) ?? null };
  },

  async source(ctx, { query }) {
    const { repositories } = ctx.platform.ports;
    const { base: newest, branch } = await source.placeOf(ctx.platform, ctx.project);
    const ahead = await aheadOf({ db: ctx.platform.db, repositories }, { ...ctx.project.key, branch });
    const commit = query.commit === undefined ? newest : await source.deployedAs(ctx, query.commit);
    if (commit === undefined) return ctx.fail("not_found", noSuchCommit);
    if (commit === null)
      return query.path === undefined
        ? { commit, ahead, files: [], text: null }
        : ctx.fail("not_found", { error: "The project has no source code yet." });
    if (query.path === undefined)
      return {
        commit,
        ahead,
        files: [...(await repositories.files(ctx.project.id, commit, limits.files_listed))],
        text: null,
      };
    const file = { path: query.path, maxBytes: limits.file_text_bytes };
    const bytes = await repositories.read(ctx.project.id, commit, file);
    if (bytes === null)
      return ctx.fail("not_found", { error: `The commit ${commit.slice(0, 8)} has no file ${query.path}.` });
    return { commit, ahead, files: [], text: textOf(bytes) };
  },

  async upload(ctx, { query, body }) {
    const branch = chooseBranch(ctx, query.branch);
    await source.requireUpload(ctx);
    const { message = "Upload" } = query;
    const sent = { content: { archive: body }, removed: [], keepsOthers: false, message };
    return deliver(ctx, sent, { branch, startsAtLive: false });
  },

  async change(ctx, { body }) {
    const branch = chooseBranch(ctx, body.branch);
    await source.requireUpload(ctx);
    const { files, delete: removed, message = describeChange(files, removed) } = body;
    if (files.length + removed.length === 0)
      return ctx.fail("invalid_request", { error: "Give at least one file to write or to delete." });
    const startsAtLive = body.base === "live";
    const wanted = { expected: body.expected_commit, startsAtLive: startsAtLive && branch === null };
    const chooseBase = (newest: string | null) => source.commitToChange(ctx, wanted, newest);
    const changed = { content: source.givenFiles(files), removed, keepsOthers: true, message, chooseBase };
    return deliver(ctx, changed, { branch, startsAtLive });
  },

  async plan(ctx, { body }) {
    const { ref, files, delete: removed } = body;
    await requireRoomForBuild(ctx);
    const hasFiles = files.length + removed.length > 0;
    if (ref !== undefined && hasFiles) return ctx.fail("invalid_request", { error: "Give either `ref` or files." });
    if (!hasFiles) return { outcome: (signal) => source.planRef(ctx, ref, signal) };
    return {
      outcome: (signal) =>
        source.planFiles(ctx, { content: source.givenFiles(files), removed, keepsOthers: true }, signal),
    };
  },

  async "plan-upload"(ctx, { body }) {
    await requireRoomForBuild(ctx);
    const sent = { content: { archive: body }, removed: [], keepsOthers: false };
    return { outcome: (signal) => source.planFiles(ctx, sent, signal) };
  },

  async logs(ctx, { params, query }) {
    const found = await selectBuild(ctx.tx, ctx.caller.org_id, params.id);
    if (found === undefined) return ctx.fail("not_found");
    // Query this before reading the log, so that no line can be added in between.
    const finished = await isLogFinished(ctx.tx, ctx.caller.org_id, found);
    const { text, next_offset } = await ctx.platform.ports.logStore.readBuild(found.id, query.offset, mostLogBytes);
    const times = timesOfLines(text, query.offset, await ctx.platform.ports.logStore.readBuildTimes(found.id));
    const complete = finished && (await readsToEnd(ctx, found.id, next_offset));
    return { build_id: found.id, status: found.status, log: text, times, next_offset, complete };
  },
};

/** Sends files to the project, or to the preview of a branch. */
function deliver(
  ctx: Context<"builds.upload"> | Context<"builds.change">,
  sent: source.Uploaded,
  { branch, startsAtLive }: { readonly branch: string | null; readonly startsAtLive: boolean },
) {
  const changesLate = true as const;
  if (branch === null)
    return { changesLate, outcome: async () => ({ ...(await source.buildUpload(ctx, sent)), preview: null }) };
  ctx.note({ action: "preview.changed", target: branch });
  const outcome = (signal: AbortSignal) => uploadToPreview(ctx, sent, { branch, startsAtLive }, signal);
  return { changesLate, outcome };
}

const noSuchCommit = {
  error: "The project has no deployment of this commit.",
  hint: "GET /v1/projects/:slug/deployments lists the deployments with their commits.",
};

function textOf(bytes: Buffer): string | null {
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    return text.includes("\0") ? null : text;
  } catch {
    return null;
  }
}

/** Returns a commit message for a change that came without one. */
function describeChange(files: readonly { readonly path: string }[], removed: readonly string[]): string {
  const names = [...files.map(({ path }) => path), ...removed];
  const more = names.length > 3 ? ` and ${names.length - 3} more` : "";
  return `Change ${names.slice(0, 3).join(", ")}${more}`.slice(0, 200);
}

async function readsToEnd(ctx: Context<"builds.logs">, id: string, offset: number): Promise<boolean> {
  const rest = await ctx.platform.ports.logStore.readBuild(id, offset, mostLogBytes);
  return rest.next_offset === offset;
}

const lineFeed = 0x0a;

/** A time at which lines were written; it applies from this line on. */
interface LineTime {
  readonly line: number;
  readonly at: string;
}

/** Returns the times of the lines of a part of a log, which begins at a byte offset of the log. */
export function timesOfLines(text: string, offset: number, times: readonly BuildTime[]): LineTime[] {
  const bytes = Buffer.from(text);
  const found: LineTime[] = [];
  let line = 0;
  let place = 0;
  for (const { offset: from, at } of times) {
    if (bytes.length === 0 || from >= offset + bytes.length) break;
    while (place < from - offset) {
      place = bytes.indexOf(lineFeed, place) + 1;
      line += 1;
    }
    // The newest time before this part applies to its first line.
    if (found.at(-1)?.line === line) found.pop();
    found.push({ line, at });
  }
  return found;
}
