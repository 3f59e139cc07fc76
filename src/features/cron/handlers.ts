import { limits } from "../../contract/limits.ts";
import { pageOf } from "../../kit/page.ts";
import type { Result } from "../../contract/routes.ts";
import { newId } from "../../kit/ids.ts";
import type { Context, Handlers, RefusalText } from "../context.ts";
import { importCrons, put, workOf } from "./import-crons.ts";
import * as queries from "./queries.ts";
import { formatCursor, parseCursor } from "./rules.ts";

export const cron: Handlers<"cron"> = {
  async list(ctx, { query }) {
    const project = ctx.project.key;
    const { shown, next_cursor } = pageOf(await queries.listJobs(ctx.tx, project, query), query.limit, ({ id }) => id);
    return { jobs: shown.map(presentJob), next_cursor };
  },

  async set(ctx, { params, body }) {
    refusePreview(ctx);
    const project = ctx.project.key;
    const count = await queries.lockJobs(ctx.tx, project);
    const old = await queries.selectJob(ctx.tx, project, params.name);
    if (old === undefined && count >= limits.cron_jobs_per_project) return tooMany(ctx);
    const { schedule, enabled = old?.enabled ?? true } = body;
    const wanted = { ...workOf(body), schedule, enabled, name: params.name };
    const outcome = await put(ctx, project, wanted, old);
    ctx.answer(outcome === "created" ? 201 : 200);
    ctx.note({
      target: params.name,
      detail: { schedule, enabled, ...(old !== undefined && { before: valuesOf(old) }) },
      silent: outcome === "same",
      losesNothing: wanted.command === null || wanted.command === old?.command,
    });
    await ctx.platform.wakeups.send(ctx.tx, "cron", project.project_id);
    return presentJob((await queries.selectJob(ctx.tx, project, params.name)) as queries.JobRow);
  },

  async restore(ctx, { params }) {
    const project = ctx.project.key;
    await queries.lockJobs(ctx.tx, project);
    const old = await queries.selectJob(ctx.tx, project, params.name);
    if (old === undefined) return ctx.fail("not_found");
    const earlier = old.previous as queries.JobValues | null;
    if (earlier === null)
      return ctx.fail("conflict", {
        error: `The cron job ${params.name} was never changed, so there is nothing to restore.`,
      });
    await put(ctx, project, { ...earlier, name: params.name }, old);
    ctx.note({ target: params.name, detail: { before: valuesOf(old) } });
    await ctx.platform.wakeups.send(ctx.tx, "cron", project.project_id);
    return presentJob((await queries.selectJob(ctx.tx, project, params.name)) as queries.JobRow);
  },

  async import(ctx, { params, body }) {
    refusePreview(ctx);
    const imported = await importCrons(ctx, ctx.project.key, body.crons);
    if (imported === "too_many") return tooMany(ctx);
    const { changed, jobs, hasNewCommand } = imported;
    ctx.note({
      target: params.slug,
      detail: { changed, jobs: jobs.slice(0, 20) },
      silent: changed === 0,
      losesNothing: !hasNewCommand,
    });
    if (changed > 0) await ctx.platform.wakeups.send(ctx.tx, "cron", ctx.project.id);
    return { imported: jobs.length, jobs };
  },

  async runs(ctx, { params, query }) {
    const project = ctx.project.key;
    const job = await queries.selectJob(ctx.tx, project, params.name);
    if (job === undefined) return ctx.fail("not_found");
    const cursor = query.cursor === undefined ? undefined : (parseCursor(query.cursor) ?? wrongCursor(ctx));
    const of = { org_id: project.org_id, job_id: job.id };
    const rows = await queries.listRuns(ctx.tx, of, { cursor, limit: query.limit });
    const { shown, next_cursor } = pageOf(rows, query.limit, formatCursor);
    return { runs: shown.map(presentRun), next_cursor };
  },

  async run(ctx, { params }) {
    const project = ctx.project.key;
    const job = await queries.lockJob(ctx.tx, project, params.name);
    if (job === undefined) return ctx.fail("not_found");
    const overlaps = await queries.isRunning(ctx.tx, project.org_id, job.id);
    const end = overlaps
      ? ({ status: "skipped", reason: "overlap", finished_at: ctx.now } as const)
      : ({ status: "running", reason: null, finished_at: null } as const);
    const id = newId("run", ctx.now.getTime());
    const run = await queries.insertManualRun(ctx.tx, {
      ...project,
      ...end,
      id,
      job_id: job.id,
      scheduled_at: ctx.now,
    });
    ctx.note({ target: params.name });
    await ctx.platform.wakeups.send(ctx.tx, "cron", project.project_id);
    return presentRun(run);
  },

  async delete(ctx, { params }) {
    const project = ctx.project.key;
    const resource = await queries.deleteJob(ctx.tx, project, params.name);
    if (resource === undefined) return ctx.fail("not_found");
    ctx.note({ target: params.name, resource });
    return undefined;
  },
};

function refusePreview(
  ctx: Pick<Context<"cron.set">, "project"> & { fail: (code: "conflict", more: RefusalText) => never },
) {
  if (ctx.project.preview_of !== null)
    ctx.fail("conflict", {
      error: "Cron jobs do not run in previews.",
      hint: "Set the job in the project that the preview belongs to.",
    });
}

function tooMany(ctx: { readonly fail: (code: "conflict", more: RefusalText) => never }): never {
  return ctx.fail("conflict", {
    error: `A project can have at most ${limits.cron_jobs_per_project} cron jobs.`,
    hint: "Remove a job that is no longer needed first.",
  });
}

function wrongCursor(ctx: Context<"cron.runs">): never {
  return ctx.fail("invalid_request", {
    error: "The cursor does not belong to this list.",
    details: [{ path: "cursor", message: "use the next_cursor of the previous page" }],
  });
}

type Job = Result<"cron.set">;
type Run = Result<"cron.run">;

const valuesOf = ({ schedule, path, command, enabled }: queries.JobRow): queries.JobValues => ({
  ...{ schedule, path, command, enabled },
});

function presentJob(row: queries.JobRow): Job {
  return {
    ...row,
    path: row.command === null ? row.path : null,
    last_status: row.last_status as Job["last_status"],
    next_run_at: row.enabled ? row.next_run_at : null,
  };
}

function presentRun(row: Awaited<ReturnType<typeof queries.insertManualRun>>): Run {
  return {
    ...row,
    trigger: row.trigger as Run["trigger"],
    status: row.status as Run["status"],
    reason: row.reason as Run["reason"],
  };
}
