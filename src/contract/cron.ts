import { z } from "zod";
import { parseSchedule } from "./cron-schedule.ts";
import { id, idCursor, pageQuery, nextCursor, ofProject, slugParam, timestamp, row } from "./table.ts";
import { limits } from "./limits.ts";
import { commandLine } from "./runs.ts";
import { cronRunStates, statesOf } from "./states.ts";

const status = z.enum(statesOf(cronRunStates));

/** Five numeric fields in UTC, stored with single spaces between them. */
const schedule = z
  .string()
  .max(200)
  .superRefine((text, ctx) => {
    const parsed = parseSchedule(text);
    if ("refused" in parsed) ctx.addIssue({ code: "custom", message: parsed.refused });
  })
  .overwrite((text) => text.trim().replaceAll(/[ \t]+/g, " "));

// The path is copied into a request line, so it must not contain anything that ends or splits that line; `//host` would name another host.
const path = z
  .string()
  .max(limits.cron_path_characters)
  .regex(
    /^\/(?![/\\])[\x21-\x7e]*$/,
    "must start with one slash and contain only printable ASCII without spaces; percent-encode other characters",
  );

const command = commandLine.describe("A shell command line, run like a one-off command with the project's variables");

/** Refuses a job that has both a path and a command, or neither. */
export function requireOneWork(
  { path: at, command: line }: { readonly path?: string | undefined; readonly command?: string | undefined },
  ctx: z.RefinementCtx,
): void {
  if ((at === undefined) === (line === undefined))
    ctx.addIssue({ code: "custom", path: ["path"], message: "give either a path to call or a command to run" });
}

const work = { path: path.optional(), command: command.optional(), schedule };

const jobName = z
  .string()
  .regex(
    /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/,
    "use letters, digits, dots, hyphens and underscores, at most 64, starting with a letter or digit",
  );

// The name is only looked up, never created, so an impossible one results in `not_found`, not in a validation error.
const params = slugParam.extend({ name: z.string().max(100) });

const cronJob = z.object({
  id,
  name: z.string(),
  schedule: z.string(),
  /** The path that it calls; null if it runs a command. */
  path: z.string().nullable(),
  command: z.string().nullable(),
  enabled: z.boolean(),
  last_status: status.nullable(),
  last_run_at: timestamp.nullable(),
  next_run_at: timestamp.nullable(),
  created_at: timestamp,
  updated_at: timestamp,
});

/** Why a run is neither a plain success nor a plain failure of the application. */
const cronReasons = [
  "overlap",
  "disabled",
  "project_deleted",
  "org_suspended",
  "nothing_deployed",
  "too_late",
  "no_ready_replica",
  "unreachable",
  "connection_lost",
  "invalid_answer",
  "interrupted",
  "cancelled",
] as const;

const cronRun = z.object({
  id,
  trigger: z.enum(["schedule", "manual"]),
  scheduled_at: timestamp,
  started_at: timestamp.nullable(),
  finished_at: timestamp.nullable(),
  status,
  reason: z.enum(cronReasons).nullable(),
  http_status: z.number().int().nullable(),
  /** Of a command; null before it exits. */
  exit_code: z.number().int().nullable(),
  duration_ms: z.number().int().nullable(),
  /** The beginning of the response, or of the command's output. */
  response_excerpt: z.string().nullable(),
});

export const rows = [
  row({
    ...ofProject,
    name: "cron.list",
    request: "GET /v1/projects/:slug/cron",
    may: "member cron:read",
    query: z.object(pageQuery(idCursor, limits.cron_jobs_listed)),
    result: z.object({ jobs: z.array(cronJob), next_cursor: nextCursor }),
    summary: "List the cron jobs with their last status, last run and next run",
  }),
  row({
    ...ofProject,
    name: "cron.set",
    request: "PUT /v1/projects/:slug/cron/:name",
    may: "member cron:write",
    // A new command is a one-off command. Everything else of a job can be restored.
    approval: true,
    params: slugParam.extend({ name: jobName }),
    body: z.strictObject({ ...work, enabled: z.boolean().optional() }).superRefine(requireOneWork),
    result: cronJob,
    success: [200, 201],
    errors: ["conflict"],
    activity: "cron.set",
    summary:
      "Create or change a cron job that calls a path or runs a command; the schedule is in UTC, and a new job is enabled unless it says otherwise",
  }),
  row({
    ...ofProject,
    name: "cron.restore",
    request: "POST /v1/projects/:slug/cron/:name/restore",
    may: "member cron:write",
    params,
    result: cronJob,
    errors: ["conflict"],
    activity: "cron.restored",
    summary: "Give a cron job back what its last change replaced: schedule, path or command, and whether it is enabled",
  }),
  row({
    ...ofProject,
    name: "cron.import",
    request: "POST /v1/projects/:slug/cron/import",
    may: "member cron:write",
    approval: true,
    body: z.strictObject({
      crons: z.array(z.strictObject(work).superRefine(requireOneWork)).max(limits.cron_jobs_per_project),
    }),
    result: z.object({ imported: z.number().int(), jobs: z.array(z.string()) }),
    errors: ["conflict"],
    activity: "cron.imported",
    summary: "Import the `crons` of a vercel.json; if one is invalid, none is imported",
  }),
  row({
    ...ofProject,
    name: "cron.runs",
    request: "GET /v1/projects/:slug/cron/:name/runs",
    may: "member cron:read",
    params,
    query: z.object(pageQuery(z.string().max(200).optional(), limits.cron_runs_listed)),
    result: z.object({ runs: z.array(cronRun), next_cursor: nextCursor }),
    large: true,
    summary: "List a job's runs, newest first, 100 at a time",
  }),
  row({
    ...ofProject,
    name: "cron.run",
    request: "POST /v1/projects/:slug/cron/:name/run",
    may: "member cron:write",
    params,
    result: cronRun,
    success: [201],
    activity: "cron.run_requested",
    summary:
      "Run a job now, independent of its schedule; the run is skipped while another run of the job is in progress",
  }),
  row({
    ...ofProject,
    name: "cron.delete",
    request: "DELETE /v1/projects/:slug/cron/:name",
    may: "member cron:write",
    approval: true,
    params,
    activity: "cron.deleted",
    summary: "Remove a cron job and its runs",
  }),
] as const;
