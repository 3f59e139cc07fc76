import { z } from "zod";
import { commitHash, id, ofProject, slugParam, timestamp, row } from "./table.ts";

export const previewStates = ["waiting", "building", "live", "failed", "removing"] as const;

/** A preview is a project too: its slug works in every route of projects. */
const preview = z.object({
  id,
  slug: z.string(),
  branch: z.string(),
  url: z.string(),
  /** `failed`: its last build or deployment failed and nothing serves; `live`: an earlier version may serve while the last one failed. */
  state: z.enum(previewStates),
  /** The commit that serves; null: none. */
  commit: z.string().nullable(),
  created_at: timestamp,
  /** When it is removed unless its branch is pushed again; null: it is pinned and stays. */
  expires_at: timestamp.nullable(),
});

export const previewBranch = z.string().min(1).max(255);

/** Why a preview cannot be made, or cannot have its data. */
export const previewErrors = [
  ...["preview_limit_reached", "operation_in_progress", "nothing_to_deploy", "conflict", "no_database"],
  ...["branch_limit", "branches_unavailable", "target_outside_window", "mask_failed", "copy_too_large"],
] as const;

/** Of a preview: the branch, or the preview's slug. */
const params = slugParam.extend({ preview: previewBranch });

export const rows = [
  row({
    ...ofProject,
    name: "previews.list",
    request: "GET /v1/projects/:slug/previews",
    may: "member projects:read",
    result: z.object({ previews: z.array(preview) }),
    summary: "List the previews of a project's branches, newest first",
  }),
  row({
    ...ofProject,
    name: "previews.create",
    request: "POST /v1/projects/:slug/previews",
    may: "member deployments:write",
    body: z.strictObject({
      branch: previewBranch,
      /** Makes the branch at the commit that serves if the repository does not have it. */
      from_live: z.boolean().default(false),
    }),
    result: preview,
    success: [201],
    errors: [...previewErrors, "storage_full", "payload_too_large", "forbidden"],
    activity: "preview.created",
    waits: true,
    summary: "Build a branch of the repository into its preview, with a URL, database and variables of its own",
  }),
  row({
    ...ofProject,
    name: "previews.delete",
    request: "DELETE /v1/projects/:slug/previews/:preview",
    may: "member projects:write",
    approval: true,
    params,
    activity: "preview.deleted",
    summary: "Delete a preview, named by its branch or slug, with all its data; no backup is kept",
  }),
  row({
    ...ofProject,
    name: "previews.pin",
    request: "PUT /v1/projects/:slug/previews/:preview/pin",
    may: "member projects:write",
    params,
    result: preview,
    activity: "preview.pinned",
    summary: "Pin a preview, as a project's staging: it stays until it is deleted, also without its branch",
  }),
  row({
    ...ofProject,
    name: "previews.unpin",
    request: "DELETE /v1/projects/:slug/previews/:preview/pin",
    may: "member projects:write",
    approval: true,
    params,
    result: preview,
    activity: "preview.unpinned",
    summary: "Unpin a preview: it ends as other previews do, with its data",
  }),
  row({
    ...ofProject,
    name: "previews.comment",
    request: "GET /v1/projects/:slug/previews/:preview/comment",
    may: "member projects:read",
    params,
    result: z.object({
      /** In Markdown. */
      text: z.string(),
      /** The pull or merge request of the branch, at the host of the followed repository; null while none is known. */
      request: z.object({ number: z.number().int(), url: z.string() }).nullable(),
      /** Whether Berth posted the comment there, and keeps it up to date. */
      posted: z.boolean(),
      /** Why the last attempt failed. */
      problem: z.string().nullable(),
    }),
    summary: "Show the text of a comment about a preview for its pull or merge request, and whether Berth posted it",
  }),
  row({
    ...ofProject,
    name: "previews.promote",
    request: "POST /v1/projects/:slug/previews/:preview/promote",
    may: "member deployments:write",
    approval: true,
    params,
    body: z.strictObject({
      /** The commit that the caller has looked at: refused if the preview serves another one by now. */
      expected_commit: commitHash.optional(),
    }),
    result: z.object({ build_id: id, commit: z.string() }),
    success: [201],
    errors: ["nothing_to_deploy", "deploy_in_progress", "storage_full", "conflict"],
    activity: "preview.promoted",
    waits: true,
    summary: "Deploy the very image that runs in a preview to its project, with the project's variables and data",
  }),
] as const;
