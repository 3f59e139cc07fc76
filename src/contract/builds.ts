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
  /** Who wrote the commit, as git says it; null when that is not known. */
  author: z.string().nullable(),
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
const ofUploads = ["storage_full", "payload_too_large", "forbidden"] as const;

const ofPlans = ["storage_full", "payload_too_large", "nothing_to_deploy"] as const;

const file = z.strictObject({
  path: z.string().min(1).max(4096),
  text: z.string(),
  /** Left out: as it was, or else a plain file. */
  executable: z.boolean().optional(),
});

/** What a push, an upload or a deploy of a source would do. */
const plan = z.object({
  outcome: z.enum(["deploys", "nothing_to_deploy", "fails"]),
  /** Null for files that are no commit yet. */
  commit: z.string().nullable(),
  branch: z.string(),
  /** The folder that is built; empty: the whole repository. */
  root: z.string(),
  /** The berth.json that was read; null when there is none. */
  berth_file: z.string().nullable(),
  /** Settings of the project that are used instead of those of berth.json. */
  overruled: z.array(z.object({ setting: z.string(), used: z.string(), in_file: z.string() })),
  /** The patterns of paths whose changes deploy; null: every change does. */
  watch: z.array(z.string()).nullable(),
  /** Why the build would fail before it begins. */
  failure: failure.nullable(),
  build: z
    .object({
      kind: z.string(),
      name: z.string(),
      uses_dockerfile: z.boolean(),
      tools: z.array(z.string()),
      notes: z.array(z.string()),
      steps: z.array(z.object({ stage: z.enum(["install", "build", "prune"]), command: z.string() })),
      /** The newest build of the same commit that made an image. */
      earlier_build: z.object({ number: z.number().int(), image_ref: z.string() }).nullable(),
    })
    .nullable(),
  /** `web` first. A type with the command null is started by what only the build decides. */
  processes: z.array(
    z.object({
      type: z.string(),
      command: z.string().nullable(),
      because: z.string().nullable(),
      replicas: z.number().int(),
      overlap: z.boolean(),
    }),
  ),
  /** Types of the active deployment that would end. */
  processes_ended: z.array(z.string()),
  release_command: z.string().nullable(),
  /** Null: the image's own, or the standard one that $PORT names. */
  port: z.number().int().nullable(),
  health_path: z.string().nullable(),
  /** What berth.json's cron jobs become. Jobs that it does not name stay as they are. */
  crons: z.array(
    z.object({
      name: z.string(),
      schedule: z.string(),
      path: z.string(),
      change: z.enum(["created", "changed", "same"]),
    }),
  ),
  /** Names in .env.example that neither the project nor the platform sets. */
  missing_variables: z.array(z.string()),
});
export type Plan = z.output<typeof plan>;

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
  row({
    name: "builds.plan",
    method: "POST",
    path: "/v1/projects/:slug/plan",
    names: "project",
    living: true,
    access: "member",
    scope: "deployments:read",
    params: slugParam,
    body: z.strictObject({
      /** A branch or a full commit hash of the repository; the newest source if left out. */
      ref: z.string().min(1).max(255).optional(),
      /** Files as `builds.change` takes them, which change the newest source for this plan. */
      files: z.array(file).max(limits.files_changed).default([]),
      delete: z.array(z.string().min(1).max(4096)).max(limits.files_changed).default([]),
    }),
    body_bytes: limits.source_body_bytes,
    result: plan,
    success: [200],
    errors: ofPlans,
    waits: true,
    summary: "Tell what a deploy of a branch, a commit or changed files would do, without doing it",
  }),
  row({
    name: "builds.plan-upload",
    method: "PUT",
    path: "/v1/projects/:slug/plan",
    names: "project",
    living: true,
    access: "member",
    scope: "deployments:read",
    params: slugParam,
    upload: true,
    result: plan,
    success: [200],
    errors: ofPlans,
    waits: true,
    summary: "Tell what a deploy of a tar archive, gzip or not, would do, without doing it",
  }),
] as const;
