import { z } from "zod";
import { failure } from "./failure.ts";
import { id, nextCursor, numberCursor, queryInteger, slugParam, timestamp } from "./fields.ts";
import { buildStates, deploymentStates, statesOf } from "./states.ts";
import { limits } from "./limits.ts";
import { row } from "./table.ts";

export const build = z.object({
  id,
  number: z.number().int(),
  status: z.enum(statesOf(buildStates)),
  commit: z.string(),
  branch: z.string(),
  message: z.string(),
  /** The name of the token or SSH key that asked for it, or the host of the repository that is followed; null for what the platform began. */
  requested_by: z.string().nullable(),
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

const message = z
  .string()
  .max(1000)
  .regex(/^[^\0]*$/, "must not contain NUL")
  .optional();

/** The build of a commit that was made of files; `builds.get` and `builds.logs` show what comes of it. */
const uploaded = z.object({
  build_id: id,
  commit: z.string(),
  /** The commit whose other files stayed; null when all files are new. */
  base: z.string().nullable(),
});
const ofUploads = ["storage_full", "disk_limit_reached", "payload_too_large", "forbidden"] as const;

const file = z.strictObject({
  path: z.string().min(1).max(4096),
  text: z.string(),
  /** Left out: as it was, or else a plain file. */
  executable: z.boolean().optional(),
});

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
  row({
    name: "builds.source",
    method: "GET",
    path: "/v1/projects/:slug/source",
    names: "project",
    living: true,
    access: "member",
    scope: "projects:read",
    params: slugParam,
    query: z.object({ path: z.string().min(1).max(4096).optional() }),
    result: z.object({
      /** The commit that a change of files begins at; null before the first. */
      commit: z.string().nullable(),
      files: z.array(z.object({ path: z.string(), size_bytes: z.number().int(), executable: z.boolean() })),
      /** The content of the file that `path` names; null for what is no text. */
      text: z.string().nullable(),
    }),
    success: [200],
    large: true,
    summary: "List the files of the newest source, or read one text file",
  }),
  row({
    name: "builds.upload",
    method: "PUT",
    path: "/v1/projects/:slug/source",
    names: "project",
    living: true,
    access: "member",
    scope: "deployments:write",
    params: slugParam,
    query: z.object({ message }),
    upload: true,
    result: uploaded,
    success: [201],
    errors: ofUploads,
    activity: "build.source_uploaded",
    waits: true,
    summary: "Replace the source by a tar archive, gzip or not, then build and deploy it like a push",
  }),
  row({
    name: "builds.change",
    method: "PATCH",
    path: "/v1/projects/:slug/source",
    names: "project",
    living: true,
    access: "member",
    scope: "deployments:write",
    params: slugParam,
    body: z.strictObject({
      files: z.array(file).max(limits.files_changed).default([]),
      /** Files and folders that go. */
      delete: z.array(z.string().min(1).max(4096)).max(limits.files_changed).default([]),
      message,
    }),
    body_bytes: limits.source_body_bytes,
    result: uploaded,
    success: [201],
    errors: ofUploads,
    activity: "build.source_changed",
    waits: true,
    summary: "Write and delete text files of the newest source, then build and deploy it like a push; other files stay",
  }),
] as const;
