import { aheadText } from "../../contract/ahead.ts";
import type { Result } from "../../contract/routes.ts";
import type { Db, Tx } from "../../store/database.ts";
import { Refused, type HandlerPlatform } from "../context.ts";
import { healthOf } from "../health/health.ts";
import { selectProject, type ProjectRow, type ShownProject } from "./queries.ts";

export {
  selectProject as findProject,
  changeProject,
  deleteExpiredNames,
  insertProject,
  isHostnameTaken,
  lockProject,
  setDeleted,
  type ProjectKey,
  type ProjectRow,
} from "./queries.ts";
export { hostnamesFor } from "./rules.ts";

/** Returns the organization's project with this slug. Throws `not_found` or, when the project is deleted, `project_deleted`. */
export async function livingProject(db: Db | Tx, orgId: string, slug: string): Promise<ProjectRow> {
  const project = await selectProject(db, orgId, slug);
  if (project === undefined) throw new Refused("not_found");
  if (project.deleted_at !== null)
    throw new Refused("project_deleted", { hint: `Undelete it first: \`berth projects undelete ${slug}\`.` });
  return project;
}

export function presentProject(
  { addresses }: Pick<HandlerPlatform, "addresses">,
  row: ShownProject,
  now: Date,
): Result<"projects.get"> {
  return {
    ...row,
    state: row.deleted_at === null ? "active" : "deleted",
    url: addresses.appUrl(row.hostname),
    earlier_names: row.earlier_names.map(({ slug, hostname, until }) => ({
      ...{ slug, until },
      url: addresses.appUrl(hostname),
    })),
    git: { ssh: addresses.gitSsh(row.org_slug, row.slug), https: addresses.gitHttp(row.org_slug, row.slug) },
    maintenance:
      row.maintenance_since === null ? null : { since: row.maintenance_since, message: row.maintenance_message },
    preview:
      row.parent_slug === null || row.git_branch === null || row.preview_expires_at === null
        ? null
        : { of: row.parent_slug, branch: row.git_branch, expires_at: shownEnd(row.preview_expires_at) },
    active_deployment: presentActive(row),
    health: healthOf(row, now),
    ahead: presentAhead(row),
  };
}

/** Without git: a page of projects must not wait for it. */
function presentAhead(row: ShownProject): Result<"projects.get">["ahead"] {
  const { newest_commit: commit, active_commit, active_number } = row;
  if (commit === null || active_commit === null || active_number === null || commit === active_commit) return null;
  const serves = { number: active_number, commit: active_commit };
  const found = { branch: row.deploy_branch ?? "main", commit, serves, commits: null };
  return { ...found, text: aheadText(found) };
}

function presentActive(row: ShownProject): Result<"projects.get">["active_deployment"] {
  if (row.active_id === null || row.active_number === null || row.active_status === null) return null;
  return {
    id: row.active_id,
    number: row.active_number,
    status: row.active_status,
    commit: row.active_commit,
    activated_at: row.active_activated_at,
  };
}

/** When a pinned preview ends. An earlier version of Berth reads it as any other time, and removes nothing. */
const never = new Date("9999-12-31T00:00:00Z");

const hourMs = 3_600_000;

/** Returns when a preview ends whose branch is pushed now, or that is pinned or unpinned now. */
export function previewEnd({ hours }: { readonly hours: number }, stays: boolean): Date {
  return stays ? never : new Date(Date.now() + hours * hourMs);
}

/** Returns when a preview ends; null: it is pinned. */
export function shownEnd(expires_at: string): string | null {
  return Date.parse(expires_at) < never.getTime() ? expires_at : null;
}
