import { z } from "zod";
import { id, ofProject, slugParam, timestamp } from "./fields.ts";
import { row } from "./table.ts";

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
  /** When it is removed unless its branch is pushed again. */
  expires_at: timestamp,
});

const branch = z.string().min(1).max(255);

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
    body: z.strictObject({ branch }),
    result: preview,
    success: [201],
    errors: [
      ...["preview_limit_reached", "operation_in_progress", "nothing_to_deploy", "conflict"],
      ...["storage_full", "payload_too_large", "forbidden"],
      ...[
        "no_database",
        "branch_limit",
        "branches_unavailable",
        "target_outside_window",
        "mask_failed",
        "copy_too_large",
      ],
    ] as const,
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
    /** The branch, or the preview's slug. */
    params: slugParam.extend({ preview: branch }),
    success: [204],
    activity: "preview.deleted",
    summary: "Delete a preview, named by its branch or slug, with all its data; no backup is kept",
  }),
] as const;
