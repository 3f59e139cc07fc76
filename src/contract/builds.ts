import { z } from "zod";
import { imageBytes } from "./deployments.ts";
import { ahead } from "./ahead.ts";
import { failure } from "./failure.ts";
import {
  changedFiles,
  commitHash,
  id,
  nextCursor,
  numberCursor,
  pageQuery,
  ofProject,
  queryInteger,
  timestamp,
  row,
} from "./table.ts";
import { buildStates, deploymentStates, statesOf } from "./states.ts";
import { limits } from "./limits.ts";
import { previewBranch, previewErrors } from "./previews.ts";

export const build = z.object({
  id,
  number: z.number().int(),
  status: z.enum(statesOf(buildStates)),
  commit: z.string(),
  branch: z.string(),
  message: z.string(),
  /** The commit's author as git reports it; null when unknown. */
  author: z.string().nullable(),
  /** The name of the token or SSH key that requested the build, or the host of the followed repository; null when the platform started it. */
  requested_by: z.string().nullable(),
  image_ref: z.string().nullable(),
  created_at: timestamp,
  started_at: timestamp.nullable(),
  finished_at: timestamp.nullable(),
  failure: failure.nullable(),
  /** Its release command only runs on a copy of the data; nothing of it goes live. */
  rehearse_only: z.boolean(),
});

/** A build with the deployment that it was requested for, by a push or a redeploy. */
const buildWithOutcome = build.extend({
  deployment: z
    .object({
      number: z.number().int(),
      status: z.enum(statesOf(deploymentStates)),
      failure: failure.nullable(),
      image_bytes: imageBytes,
    })
    .nullable(),
});

const idParam = z.object({ id });

const message = z
  .string()
  .max(1000)
  .regex(/^[^\0]*$/, "must not contain NUL")
  .optional();

/** The build of a commit that was created from files. `builds.get` and `builds.logs` show its progress. */
const uploaded = z.object({
  build_id: id,
  commit: z.string(),
  /** The commit whose other files were kept; null when all files are new. */
  base: z.string().nullable(),
  /** What the deploy brings back; null when nothing. */
  ahead: ahead.nullable(),
  /** The preview that gets the change instead of the project; null: the project gets it. */
  preview: z
    .object({
      slug: z.string(),
      branch: z.string(),
      url: z.string(),
      /** What goes where, whether the project has moved on since, and what a person does to let it go live. */
      text: z.string(),
    })
    .nullable(),
});
const ofUploads = ["storage_full", "payload_too_large", "forbidden", ...previewErrors] as const;

/**
 * Sends the change to the preview of this branch, which is made if it is missing. Tokens in approval mode get one without asking, where
 * agents deploy to previews only: `agent-` and the token's name.
 */
const intoPreview = previewBranch.optional();

const ofPlans = ["storage_full", "payload_too_large", "nothing_to_deploy"] as const;

/** What a push, an upload or a deploy of a source would do. */
const plan = z.object({
  outcome: z.enum(["deploys", "nothing_to_deploy", "fails"]),
  /** Null for files that are not a commit yet. */
  commit: z.string().nullable(),
  branch: z.string(),
  /** The folder to build; empty for the whole repository. */
  root: z.string(),
  /** The path of the berth.json that was used; null when there is none. */
  berth_file: z.string().nullable(),
  /** Project settings that override those in berth.json. */
  overruled: z.array(z.object({ setting: z.string(), used: z.string(), in_file: z.string() })),
  /** Path patterns: only changes to matching paths deploy. Null: every change deploys. */
  watch: z.array(z.string()).nullable(),
  /** Why the build would fail before it starts. */
  failure: failure.nullable(),
  build: z
    .object({
      kind: z.string(),
      name: z.string(),
      uses_dockerfile: z.boolean(),
      tools: z.array(z.string()),
      notes: z.array(z.string()),
      steps: z.array(z.object({ stage: z.enum(["install", "build", "prune"]), command: z.string() })),
      /** The newest build of the same commit that produced an image. */
      earlier_build: z.object({ number: z.number().int(), image_ref: z.string() }).nullable(),
    })
    .nullable(),
  /** `web` first. `command` is null when only the build can determine it. */
  processes: z.array(
    z.object({
      type: z.string(),
      command: z.string().nullable(),
      because: z.string().nullable(),
      replicas: z.number().int(),
      overlap: z.boolean(),
    }),
  ),
  /** Process types of the active deployment that would be removed. */
  processes_ended: z.array(z.string()),
  release_command: z.string().nullable(),
  /** Null: the image's own port, or the default one that $PORT holds. */
  port: z.number().int().nullable(),
  health_path: z.string().nullable(),
  /** How berth.json would change the cron jobs. Jobs that it does not name stay unchanged. */
  crons: z.array(
    z.object({
      name: z.string(),
      schedule: z.string(),
      path: z.string().nullable(),
      command: z.string().nullable(),
      change: z.enum(["created", "changed", "same"]),
    }),
  ),
  /** What the deploy brings back that serves no more, as after a rollback; null when nothing. */
  ahead: ahead.nullable(),
  /** Names in .env.example that neither the project nor the platform defines. */
  missing_variables: z.array(z.string()),
});
export type Plan = z.output<typeof plan>;

export const rows = [
  row({
    ...ofProject,
    name: "builds.list",
    request: "GET /v1/projects/:slug/builds",
    may: "member deployments:read",
    query: z.object(pageQuery(numberCursor, limits.builds_listed)),
    result: z.object({ builds: z.array(build), next_cursor: nextCursor }),
    summary: "List the builds, newest first, 100 at a time",
  }),
  row({
    name: "builds.get",
    request: "GET /v1/builds/:id",
    names: "build",
    may: "member deployments:read",
    params: idParam,
    result: buildWithOutcome,
    summary: "Show one build, and the deployment that it produced",
  }),
  row({
    name: "builds.cancel",
    request: "POST /v1/builds/:id/cancel",
    names: "build",
    may: "member deployments:write",
    params: idParam,
    result: buildWithOutcome,
    errors: ["conflict"],
    activity: "build.cancelled",
    summary: "Cancel a build, or its deployment as long as that is not live",
  }),
  row({
    name: "builds.logs",
    request: "GET /v1/builds/:id/logs",
    names: "build",
    may: "member logs:read",
    params: idParam,
    query: z.object({ offset: queryInteger(0, 9_999_999_999, 0) }),
    result: z.object({
      build_id: id,
      status: z.enum(statesOf(buildStates)),
      log: z.string(),
      /** Times at which lines of `log` were written, to the second; each applies from the line with this index on. Empty in logs without times. */
      times: z.array(z.object({ line: z.number().int(), at: timestamp })),
      next_offset: z.number().int(),
      complete: z.boolean(),
    }),
    large: true,
    summary: "Read a build's log from a byte offset; `complete` is true once the log has ended",
  }),
  row({
    ...ofProject,
    name: "builds.source",
    request: "GET /v1/projects/:slug/source",
    may: "member projects:read",
    query: z.object({
      path: z.string().min(1).max(4096).optional(),
      /** The full commit hash of a deployment, or `live` for the one that serves. Defaults to the newest source. */
      commit: z
        .string()
        .regex(/^(?:live|[0-9a-f]{40})$/, "must be a full commit hash or `live`")
        .optional(),
    }),
    result: z.object({
      /** The commit of these files; without `commit`, the one on which a change of files is based, null before the first. */
      commit: z.string().nullable(),
      /** What the newest source has and what serves has not; null when nothing. */
      ahead: ahead.nullable(),
      files: z.array(z.object({ path: z.string(), size_bytes: z.number().int(), executable: z.boolean() })),
      /** The content of the file at `path`; null when it is not text. */
      text: z.string().nullable(),
    }),
    large: true,
    summary: "List the files of the latest source, or of a deployment's commit, or read one text file",
  }),
  row({
    ...ofProject,
    name: "builds.upload",
    request: "PUT /v1/projects/:slug/source",
    may: "member deployments:write",
    query: z.object({ message, branch: intoPreview }),
    upload: "archive",
    result: uploaded,
    success: [201],
    errors: ofUploads,
    activity: "build.source_uploaded",
    handles_source: true,
    waits: true,
    summary: "Replace the source with a tar archive (plain or gzip), then build and deploy it like a push",
  }),
  row({
    ...ofProject,
    name: "builds.change",
    request: "PATCH /v1/projects/:slug/source",
    may: "member deployments:write",
    body: z.strictObject({
      ...changedFiles,
      message,
      /** The commit that the caller has read: the change is refused if it is no longer the one that the change begins at. */
      expected_commit: commitHash.optional(),
      /** `live` begins at the files of the deployment that serves, as after a rollback; `newest` at those of the newest source. */
      base: z.enum(["newest", "live"]).default("newest"),
      branch: intoPreview,
    }),
    body_bytes: limits.source_body_bytes,
    result: uploaded,
    success: [201],
    errors: [...ofUploads, "branch_moved"],
    activity: "build.source_changed",
    handles_source: true,
    waits: true,
    summary:
      "Write and delete text files of the latest source, then build and deploy it like a push; other files do not change",
  }),
  row({
    ...ofProject,
    name: "builds.plan",
    request: "POST /v1/projects/:slug/plan",
    may: "member deployments:read",
    body: z.strictObject({
      /** A branch or a full commit hash of the repository. Defaults to the newest source. */
      ref: z.string().min(1).max(255).optional(),
      /** Files in the format of `builds.change`, applied to the newest source for this plan only. */
      ...changedFiles,
    }),
    body_bytes: limits.source_body_bytes,
    result: plan,
    errors: ofPlans,
    handles_source: true,
    waits: true,
    summary: "Show what a deploy of a branch, a commit or changed files would do, without deploying",
  }),
  row({
    ...ofProject,
    name: "builds.plan-upload",
    request: "PUT /v1/projects/:slug/plan",
    may: "member deployments:read",
    upload: "archive",
    result: plan,
    errors: ofPlans,
    handles_source: true,
    waits: true,
    summary: "Show what a deploy of a tar archive (plain or gzip) would do, without deploying",
  }),
] as const;
