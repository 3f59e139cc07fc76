import { z } from "zod";
import { ahead } from "./ahead.ts";
import { rootFolder, watchedPaths } from "./berth-file.ts";
import * as deployments from "./deployments.ts";
import { variableName } from "./env.ts";
import { id, name, notice, ofProject, queryFlag, slug, slugParam, timestamp, row } from "./table.ts";
import { health } from "./health.ts";
import { limits } from "./limits.ts";

export const previewContents = ["empty", "branch", "masked"] as const;
export type PreviewContent = (typeof previewContents)[number];
export const agentsMay = ["deploy", "preview"] as const;

export const project = z.object({
  id,
  slug: z.string(),
  name: z.string(),
  state: z.enum(["active", "deleted"]),
  port: z.number().int().nullable(),
  /** The folder of the repository to build. Null: the one in berth.json, or else the whole repository. */
  root: z.string().nullable(),
  /** Path patterns: only changes to matching paths deploy. Null: those in berth.json, or else the folder. */
  watch: z.array(z.string()).nullable(),
  health_path: z.string().nullable(),
  /** How long a deployment may take until it is healthy. Null: the image's own start period, or the platform's default if that is longer. */
  start_seconds: z.number().int().nullable(),
  replicas: z.number().int(),
  /** Minutes without a request after which it sleeps; the next request waits until it has started. Null: it never sleeps. */
  sleep_after_minutes: z.number().int().nullable(),
  /** Whether it has a storage folder that outlives deployments and binds its replicas to one machine. */
  storage: z.boolean(),
  /** When maintenance mode was switched on, and the page's text (null: the default text). Null: requests go to the application. */
  maintenance: z.object({ since: timestamp, message: z.string().nullable() }).nullable(),
  url: z.string(),
  /** Former slugs of the project. Until `until` they still work and lead to the project. */
  earlier_names: z.array(z.object({ slug: z.string(), url: z.string(), until: timestamp })),
  git: z.object({ ssh: z.string(), https: z.string() }),
  /** The branches that get previews, as patterns; null: none. */
  previews: z.array(z.string()).nullable(),
  /** The variables that its previews inherit; null: none. */
  preview_variables: z.array(z.string()).nullable(),
  /** The data of new previews: an empty database, or a branch of the project's, masked or as it is. */
  preview_data: z.enum(previewContents),
  /** `preview`: tokens in approval mode deploy to its previews only, and a person promotes one. */
  agents: z.enum(agentsMay),
  /** Of a preview: the project whose branch it serves, and when it is removed unless the branch is pushed again; null while it is pinned. */
  preview: z.object({ of: z.string(), branch: z.string(), expires_at: timestamp.nullable() }).nullable(),
  /** Whether it follows a branch of a remote repository, shown by `GET …/follow`. */
  follows: z.boolean(),
  created_at: timestamp,
  updated_at: timestamp,
  deleted_at: timestamp.nullable(),
  active_deployment: deployments.deploymentSummary.nullable(),
  /** Null once it is deleted. */
  health: health.nullable(),
  /** What the branch that deploys has and what serves has not, as after a rollback; null when nothing. The commits are not counted. */
  ahead: ahead.nullable(),
});

const port = z.number().int().min(1).max(65535).nullable();
const healthPath = z
  .string()
  .max(512)
  .regex(
    /^\/(?![/\\])[^\s\\\u0000-\u001f\u007f-\u009f]*$/,
    "must start with one slash and contain no space, backslash or control character",
  )
  .nullable();

/** `*` stands for any text, slashes included. */
const branchPatterns = z
  .array(
    z
      .string()
      .min(1)
      .max(200)
      .regex(/^[^\s\u0000-\u001f\u007f]+$/, "must contain no space or control character"),
  )
  .min(1)
  .max(20);

export const rows = [
  row({
    name: "projects.create",
    request: "POST /v1/projects",
    may: "member projects:write",
    body: z.strictObject({ slug, name }),
    result: project,
    success: [201],
    errors: ["slug_taken", "project_limit_reached"],
    activity: "project.created",
    summary: "Create a project and its git repository",
  }),
  row({
    name: "projects.list",
    request: "GET /v1/projects",
    may: "member projects:read",
    within_projects: true,
    query: z.object({ deleted: queryFlag, previews: queryFlag }),
    result: z.object({ projects: z.array(project) }),
    summary:
      "List the organization's projects, newest first; deleted ones with ?deleted=true, previews with ?previews=true",
  }),
  row({
    name: "projects.get",
    request: "GET /v1/projects/:slug",
    names: "project",
    may: "member projects:read",
    params: slugParam,
    result: project,
    summary: "Show one project",
  }),
  row({
    ...ofProject,
    name: "projects.settings",
    request: "PUT /v1/projects/:slug/settings",
    may: "owner projects:write",
    body: z.strictObject({
      port: port.optional(),
      health_path: healthPath.optional(),
      start_seconds: z.number().int().min(1).max(limits.start_seconds).nullable().optional(),
      /** Applies at once. A project with background processes or cron jobs stays awake. */
      sleep_after_minutes: z.number().int().min(1).max(limits.sleep_minutes).nullable().optional(),
      root: rootFolder.nullable().optional(),
      watch: watchedPaths.nullable().optional(),
      /** False: replicas get no storage folder, so a swarm can run them on any machine. */
      storage: z.boolean().optional(),
      previews: branchPatterns.nullable().optional(),
      /** A token in approval mode adds none. */
      preview_variables: z.array(variableName).max(100).nullable().optional(),
      /** A token in approval mode does not choose `branch`, which copies the data without masking it. */
      preview_data: z.enum(previewContents).optional(),
      /** Not for tokens in approval mode. */
      agents: z.enum(agentsMay).optional(),
    }),
    result: project,
    errors: ["forbidden"],
    activity: "project.settings_changed",
    summary: "Change settings for the next deploy, and when it sleeps; null resets",
  }),
  row({
    ...ofProject,
    name: "projects.rename",
    request: "POST /v1/projects/:slug/rename",
    may: "owner projects:write",
    body: z.strictObject({ slug }),
    result: project,
    errors: ["slug_taken", "conflict"],
    activity: "project.renamed",
    summary: `Give a project another slug and hostname; the earlier ones lead to it for ${limits.earlier_name_days} more days`,
  }),
  row({
    ...ofProject,
    name: "projects.maintenance",
    request: "PUT /v1/projects/:slug/maintenance",
    may: "member projects:write",
    body: z.strictObject({
      on: z.boolean(),
      /** The page's text. When absent, a page that is already on keeps its text. */
      message: notice.nullable().optional(),
    }),
    result: project,
    errors: ["edge_unavailable"],
    activity: "project.maintenance",
    waits: true,
    summary: "Switch the maintenance page for visitors on or off; the application, deploys and cron jobs go on",
  }),
  row({
    name: "projects.delete",
    request: "DELETE /v1/projects/:slug",
    names: "project",
    may: "member projects:write",
    approval: true,
    params: slugParam,
    query: z.object({ purge: queryFlag }),
    result: project.extend({
      /** Whether everything except the final backup is deleted and the slug is free again. */
      purged: z.boolean(),
      /** A verified backup; null when nothing was purged or there was no database. */
      final_backup_id: id.nullable(),
    }),
    errors: ["project_deleted", "conflict"],
    activity: "project.deleted",
    waits: true,
    summary:
      "Delete a project: it stops serving and all its data is kept; ?purge=true erases a deleted project for good",
  }),
  row({
    name: "projects.undelete",
    request: "POST /v1/projects/:slug/undelete",
    names: "project",
    may: "member projects:write",
    params: slugParam,
    result: project,
    errors: ["conflict", "operation_in_progress", "project_limit_reached"],
    activity: "project.undeleted",
    summary: "Restore a deleted project with the deployment it had",
  }),
] as const;
