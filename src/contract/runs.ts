import { z } from "zod";
import { nextCursor, numberCursor, pageQuery, ofProject, queryInteger, slugParam, timestamp, row } from "./table.ts";
import { limits } from "./limits.ts";

export const commandLine = z
  .string()
  .min(1)
  .max(limits.command_characters)
  .regex(/^[^\0]*$/, "must not contain a NUL character");

const run = z.object({
  number: z.number().int(),
  /** `interrupted`: the platform stopped during the run, which is not repeated. */
  status: z.enum(["queued", "running", "succeeded", "failed", "timed_out", "cancelled", "interrupted"]),
  command: z.string(),
  /** The number of the deployment that supplies image and variables. */
  deployment: z.number().int(),
  timeout_seconds: z.number().int(),
  terminal: z.boolean(),
  /** Null before it exits, and when the platform ended it. */
  exit_code: z.number().int().nullable(),
  requested_by: z.string(),
  created_at: timestamp,
  started_at: timestamp.nullable(),
  finished_at: timestamp.nullable(),
});

const withOutput = z.object({
  run,
  /** Both output streams in the order written, with secrets redacted. */
  output: z.string(),
  /** Pass it as `offset` to continue reading. */
  next_offset: z.number().int(),
  /** The run has ended and there is no more output. */
  complete: z.boolean(),
});

const runParams = slugParam.extend({ number: z.string().max(100) });

export const rows = [
  row({
    ...ofProject,
    name: "runs.list",
    request: "GET /v1/projects/:slug/runs",
    may: "member deployments:read",
    query: z.object(pageQuery(numberCursor, limits.runs_listed)),
    result: z.object({ runs: z.array(run), next_cursor: nextCursor }),
    summary: "List one-off commands, newest first, 100 at a time",
  }),
  row({
    ...ofProject,
    name: "runs.create",
    request: "POST /v1/projects/:slug/runs",
    may: "member deployments:write",
    approval: true,
    body: z.strictObject({
      /** A shell command line, run in the application's folder. */
      command: commandLine,
      timeout_seconds: z.number().int().min(1).max(86_400).default(600),
      /** The number of a deployment whose image still exists. Defaults to the active one. */
      deployment: z.number().int().min(1).max(2_147_483_647).optional(),
      /** How long the response waits for the run to end. After that the run continues in the background. */
      wait_seconds: z.number().int().min(0).max(120).default(30),
      /** An interactive run starts when `GET …/runs/:number/terminal` is opened, within a minute, and ends with that connection. */
      terminal: z.boolean().default(false),
    }),
    result: withOutput,
    success: [201],
    errors: ["org_suspended", "nothing_to_deploy", "conflict"],
    activity: "run.requested",
    waits: true,
    summary: "Run a one-off command in the application's image, with its variables, database and storage",
  }),
  row({
    ...ofProject,
    name: "runs.get",
    request: "GET /v1/projects/:slug/runs/:number",
    may: "member deployments:read",
    params: runParams,
    query: z.object({ offset: queryInteger(0, 1_000_000_000, 0) }),
    result: withOutput,
    large: true,
    summary: "Show a one-off command and at most 64 KiB of its output from an offset",
  }),
  row({
    ...ofProject,
    name: "runs.terminal",
    request: "GET /v1/projects/:slug/runs/:number/terminal",
    may: "member deployments:write",
    params: runParams,
    result: z.object({ run }),
    errors: ["conflict"],
    upgrades: true,
    summary: "Show a command that was requested with a terminal; an upgrade to a WebSocket runs it there",
  }),
  row({
    ...ofProject,
    name: "runs.cancel",
    request: "POST /v1/projects/:slug/runs/:number/cancel",
    may: "member deployments:write",
    params: runParams,
    result: z.object({ run }),
    activity: "run.cancelled",
    summary: "Cancel a one-off command; a command that has ended does not change",
  }),
] as const;
