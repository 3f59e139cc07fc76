import { z } from "zod";
import { failure } from "./failure.ts";
import { id, nextCursor, numberCursor, queryInteger, slugParam, timestamp } from "./fields.ts";
import { buildStates, deploymentStates, statesOf } from "./states.ts";
import { row } from "./table.ts";

export const build = z.object({
  id,
  number: z.number().int(),
  status: z.enum(statesOf(buildStates)),
  commit: z.string(),
  branch: z.string(),
  message: z.string(),
  image_ref: z.string().nullable(),
  created_at: timestamp,
  started_at: timestamp.nullable(),
  finished_at: timestamp.nullable(),
  failure: failure.nullable(),
});

/** A build with what came of it: the deployment that a push or a redeploy asked it for. */
const buildWithOutcome = build.extend({
  deployment: z
    .object({
      number: z.number().int(),
      status: z.enum(statesOf(deploymentStates)),
      failure: failure.nullable(),
    })
    .nullable(),
});

const idParam = z.object({ id });

export const rows = [
  row({
    name: "builds.list",
    method: "GET",
    path: "/v1/projects/:slug/builds",
    names: "project",
    living: true,
    access: "member",
    scope: "deployments:read",
    params: slugParam,
    query: z.object({ cursor: numberCursor }),
    result: z.object({ builds: z.array(build), next_cursor: nextCursor }),
    success: [200],
    summary: "List the builds, newest first, 100 at a time",
  }),
  row({
    name: "builds.get",
    method: "GET",
    path: "/v1/builds/:id",
    names: "build",
    access: "member",
    scope: "deployments:read",
    params: idParam,
    result: buildWithOutcome,
    success: [200],
    summary: "Show one build, and the deployment that came of it",
  }),
  row({
    name: "builds.cancel",
    method: "POST",
    path: "/v1/builds/:id/cancel",
    names: "build",
    access: "member",
    scope: "deployments:write",
    params: idParam,
    result: buildWithOutcome,
    success: [200],
    errors: ["conflict"],
    activity: "build.cancelled",
    summary: "Cancel a build, or the deployment that came of it as long as it is not live",
  }),
  row({
    name: "builds.logs",
    method: "GET",
    path: "/v1/builds/:id/logs",
    names: "build",
    access: "member",
    scope: "logs:read",
    params: idParam,
    query: z.object({ offset: queryInteger(0, 9_999_999_999, 0) }),
    result: z.object({
      build_id: id,
      status: z.enum(statesOf(buildStates)),
      log: z.string(),
      next_offset: z.number().int(),
      complete: z.boolean(),
    }),
    success: [200],
    large: true,
    summary: "Read a build's log from a byte offset on; `complete` says that no more will come",
  }),
] as const;
