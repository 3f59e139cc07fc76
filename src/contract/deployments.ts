import { z } from "zod";
import { failure } from "./failure.ts";
import {
  changedFiles,
  commitHash,
  id,
  nextCursor,
  numberCursor,
  pageQuery,
  ofProject,
  optionalQueryInteger,
  slugParam,
  timestamp,
  row,
} from "./table.ts";
import { imageName } from "./image-name.ts";
import { limits } from "./limits.ts";
import { deploymentStates, statesOf } from "./states.ts";
import { rehearsal } from "./rehearsal.ts";

const status = z.enum(statesOf(deploymentStates));

export const deploymentSummary = z.object({
  id,
  number: z.number().int(),
  status,
  commit: z.string().nullable(),
  activated_at: timestamp.nullable(),
});

/** What its image's files take, also those that other images share; null once the image is deleted. */
export const imageBytes = z.number().int().nullable();

export const deployment = z.object({
  id,
  number: z.number().int(),
  status,
  trigger: z.enum(["push", "upload", "follow", "redeploy", "rollback", "variables", "restart"]),
  build_id: id,
  commit: z.string(),
  image_ref: z.string(),
  image_bytes: imageBytes,
  created_at: timestamp,
  activated_at: timestamp.nullable(),
  retired_at: timestamp.nullable(),
  rolled_back_from: id.nullable(),
  failure: failure.nullable(),
  /** Its release command only ran on a copy of the data; it ends as `superseded`, and nothing of it goes live. */
  rehearse_only: z.boolean(),
});

const compared = deployment.extend({
  message: z.string(),
});
const changedFile = z.object({
  path: z.string(),
  status: z.enum(["added", "deleted", "changed"]),
  /** How many lines; null for a binary file, and if counting took too long. */
  added: z.number().int().nullable(),
  removed: z.number().int().nullable(),
  binary: z.boolean(),
  /** In unified form, from the first `@@` on. Null for a binary file, and when the files before it filled the answer: ask with its `path`. */
  lines: z.string().nullable(),
  /** Whether lines, or parts of long lines, are missing. */
  cut: z.boolean(),
});
export const comparedLines = z.object({
  /** The newest first. `removed`: only the code of `from` contains it. */
  commits: z.array(
    z.object({
      side: z.enum(["added", "removed"]),
      commit: z.string(),
      author: z.string(),
      message: z.string(),
      at: timestamp,
    }),
  ),
  /** Null when one of the commits is no longer stored. */
  files: z.array(changedFile).nullable(),
  /** False: commits, files or lines were left out; `compared_…` in the limits. */
  complete: z.boolean(),
});
const comparedNumber = optionalQueryInteger(1, 2_147_483_647);

export const replicasBody = z.strictObject({ replicas: z.number().int().min(1).max(limits.replicas) });

export const rows = [
  row({
    ...ofProject,
    name: "deployments.list",
    request: "GET /v1/projects/:slug/deployments",
    may: "member deployments:read",
    query: z.object(pageQuery(numberCursor, limits.deployments_listed)),
    result: z.object({ deployments: z.array(deployment), next_cursor: nextCursor }),
    summary: "List the deployments, newest first, 100 at a time",
  }),
  row({
    ...ofProject,
    name: "deployments.compare",
    request: "GET /v1/projects/:slug/compare",
    may: "member deployments:read",
    // The result contains names of variables.
    further_scopes: ["env:read"],
    query: z.object({
      /** Defaults to the newest deployment before `to` that served. */
      from: comparedNumber,
      /** Defaults to the newest deployment. */
      to: comparedNumber,
    }),
    result: z.object({
      from: compared,
      to: compared,
      /** Paths that differ, at most `files_listed`; null when one of the commits is no longer stored. */
      files: z.array(z.string()).nullable(),
      /** Names of the project's variables; values are never shown. */
      variables: z.object({ added: z.array(z.string()), removed: z.array(z.string()), changed: z.array(z.string()) }),
      settings: z.array(
        z.object({
          name: z.enum(["port", "health_path"]),
          from: z.union([z.string(), z.number().int()]).nullable(),
          to: z.union([z.string(), z.number().int()]).nullable(),
        }),
      ),
    }),
    summary: "Compare two deployments: commits, changed files, names of variables, settings",
  }),
  row({
    ...ofProject,
    name: "deployments.lines",
    request: "GET /v1/projects/:slug/compare/lines",
    may: "member projects:read",
    further_scopes: ["deployments:read"],
    query: z.object({
      /** As in `deployments.compare`; with `build`, `from` defaults to the deployment that serves. */
      from: comparedNumber,
      to: comparedNumber,
      /** In the place of `to`, the number of a build: also of one that failed and led to no deployment. */
      build: comparedNumber,
      /** Only this file. */
      path: z.string().min(1).max(4096).optional(),
    }),
    result: comparedLines,
    large: true,
    summary: "Compare the code of two deployments: commits, and the lines that differ in each file",
  }),
  row({
    ...ofProject,
    name: "deployments.rehearsal",
    request: "GET /v1/projects/:slug/deployments/:number/rehearsal",
    may: "member deployments:read",
    params: slugParam.extend({ number: z.string().max(100) }),
    result: z.object({ rehearsal: rehearsal.nullable() }),
    summary: "Show what the release command of a deployment did to a copy of the data; null when it was not rehearsed",
  }),
  row({
    ...ofProject,
    name: "deployments.rehearse",
    request: "POST /v1/projects/:slug/rehearsals",
    may: "member deployments:write",
    /** At most one of `branch`, `deployment` and files. Without any: the newest commit that went live. */
    body: z.strictObject({
      /** A branch of the project's repository. */
      branch: z.string().min(1).max(255).optional(),
      /** The number of a deployment, whose commit is built again. */
      deployment: z.number().int().min(1).max(2_147_483_647).optional(),
      /** Files as in `builds.plan`: applied to the newest source for this rehearsal only. */
      ...changedFiles,
    }),
    body_bytes: limits.source_body_bytes,
    result: z.object({ build_id: id, commit: z.string() }),
    success: [201],
    errors: ["nothing_to_deploy", "deploy_in_progress", "storage_full", "payload_too_large", "forbidden"],
    activity: "deployment.rehearsal_requested",
    waits: true,
    handles_source: true,
    summary:
      "Build a branch or changed files, and run the release command on a copy of the data only; nothing goes live",
  }),
  row({
    ...ofProject,
    name: "deployments.create",
    request: "POST /v1/projects/:slug/deployments",
    may: "member deployments:write",
    body: z.strictObject({
      commit: commitHash.optional(),
      /** A prebuilt container image. Its digest is resolved at the registry when the build runs. */
      image: imageName.optional(),
    }),
    result: z.object({ build_id: id, commit: z.string() }),
    success: [201],
    errors: [
      ...["nothing_to_deploy", "deploy_in_progress", "storage_full"],
      ...["payload_too_large", "forbidden", "images_not_supported"],
    ] as const,
    activity: "deployment.requested",
    waits: true,
    summary: "Deploy without a push: the latest pushed commit, a named commit or an existing container image",
  }),
  row({
    ...ofProject,
    name: "deployments.rollback",
    request: "POST /v1/projects/:slug/rollback",
    may: "member deployments:write",
    body: z.strictObject({
      /** A deployment number. Defaults to the last good earlier one. */
      deployment: z.number().int().min(1).max(2_147_483_647).optional(),
    }),
    result: z.object({
      status: z.literal("rolled_back"),
      /** The numbers of the deployment that served before, and of the one whose image and variables serve again. */
      from: z.number().int(),
      to: z.number().int(),
      deployment,
      /** The names of the project's variables that the rollback changed. */
      changed_variables: z.array(z.string()),
      /** The branch whose newest deployed commit is another one, which the next deploy builds; null when it is this one. */
      newer_branch: z.string().nullable(),
    }),
    errors: [
      "org_suspended",
      "forbidden",
      "nothing_to_roll_back",
      "deploy_in_progress",
      "previous_unhealthy",
      "edge_unavailable",
    ],
    activity: "deployment.rollback_requested",
    waits: true,
    summary:
      "Roll back to the image and variables of the last good deployment before this one, or of the deployment with the given number",
  }),
  row({
    ...ofProject,
    name: "deployments.scale",
    request: "PUT /v1/projects/:slug/scale",
    may: "operator deployments:write",
    body: replicasBody,
    result: replicasBody,
    activity: "project.scaled",
    summary: "Set how many replicas run",
  }),
] as const;
