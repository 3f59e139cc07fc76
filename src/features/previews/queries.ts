import { sql } from "kysely";
import type { previewStates } from "../../contract/previews.ts";
import type { Db, Tx } from "../../store/database.ts";
import { provenNow } from "../../store/proven-time.ts";
import type { ProjectKey, ProjectRow } from "../projects/projects.ts";

/** A preview's row, and when it has ended. */
export type PreviewRow = Pick<ProjectRow, "id" | "org_id" | "slug" | "hostname" | "deleted_at" | "preview_expires_at">;

/** Returns the preview of a branch, deleted or not; undefined when there is none or it is purged. */
export async function selectPreview(
  db: Db | Tx,
  { org_id, project_id }: ProjectKey,
  branch: string,
): Promise<PreviewRow | undefined> {
  return db
    .selectFrom("project")
    .select(["id", "org_id", "slug", "hostname", "deleted_at", "preview_expires_at"])
    .where(({ and }) => and({ org_id, preview_of: project_id, git_branch: branch }))
    .where("purged_at", "is", null)
    .executeTakeFirst();
}

export async function countPreviews(tx: Tx, { org_id, project_id }: ProjectKey): Promise<number> {
  const row = await tx
    .selectFrom("project")
    .select(sql<number>`count(*)::integer`.as("count"))
    .where(({ and }) => and({ org_id, preview_of: project_id }))
    .where("deleted_at", "is", null)
    .executeTakeFirstOrThrow();
  return row.count;
}

const sleepAfterMinutes = 30;

/** Gives a preview its project's settings, and its time from now on. It sleeps earlier than its project only if that does not say when. */
export async function refreshPreview(tx: Tx, { org_id, id }: Pick<PreviewRow, "org_id" | "id">, expires: Date) {
  await sql`
    update project p set port = o.port, health_path = o.health_path, start_seconds = o.start_seconds, sleep_after_minutes = coalesce(o.sleep_after_minutes, ${sleepAfterMinutes}), root = o.root, storage = o.storage,
      preview_expires_at = ${expires}, updated_at = now()
    from project o where o.id = p.preview_of and o.org_id = p.org_id and p.org_id = ${org_id} and p.id = ${id}`.execute(
    tx,
  );
}

export async function setPreviewEnd(tx: Tx, { org_id, project_id: id }: ProjectKey, expires: Date): Promise<void> {
  await tx
    .updateTable("project")
    .set({ preview_expires_at: expires.toISOString() })
    .where(({ and }) => and({ org_id, id }))
    .execute();
}

/** Returns the previews that have to go: expired, or of a deleted project. Those being purged are left out, as are failures of the last minute. */
export async function endedPreviews(db: Db): Promise<readonly ProjectKey[]> {
  const { rows } = await sql<ProjectKey>`
    select p.org_id, p.id as project_id from project p join project o on o.id = p.preview_of
    where p.purged_at is null and (p.preview_expires_at <= ${provenNow} or p.deleted_at is not null or o.deleted_at is not null)
      and not exists (select from project_purge u where u.project_id = p.id
        and (u.status = 'running' or u.finished_at > now() - interval '1 minute'))`.execute(db);
  return rows;
}

/** Returns the slug of a preview's project, and its branch; undefined for any other project. */
export async function previewFacts(db: Db | Tx, { org_id, project_id }: ProjectKey) {
  const { rows } = await sql<{ of: string; branch: string }>`
    select o.slug as of, p.git_branch as branch from project p join project o on o.id = p.preview_of
    where p.org_id = ${org_id} and p.id = ${project_id}`.execute(db);
  return rows[0];
}

export async function isFirstOrganization(db: Db | Tx, orgId: string): Promise<boolean> {
  const row = await db.selectFrom("organization").select("is_first").where("id", "=", orgId).executeTakeFirstOrThrow();
  return row.is_first;
}

export interface ListedPreview extends Pick<ProjectRow, "id" | "slug" | "hostname"> {
  readonly branch: string;
  readonly state: (typeof previewStates)[number];
  readonly commit: string | null;
  readonly created_at: string;
  readonly expires_at: string;
}

/** Returns the previews of a project that are not purged, newest first. */
export async function listPreviews(db: Db | Tx, { org_id, project_id }: ProjectKey): Promise<readonly ListedPreview[]> {
  const { rows } = await sql<ListedPreview>`
    select p.id, p.slug, p.hostname, p.git_branch as branch, a.commit, p.created_at, p.preview_expires_at as expires_at,
      case when p.deleted_at is not null then 'removing'
        when exists (select from build b where b.project_id = p.id and b.status in ('queued', 'running'))
          or exists (select from deployment d where d.project_id = p.id and d.status in ('pending', 'starting')) then 'building'
        when a.id is not null then 'live'
        when exists (select from build b where b.project_id = p.id) then 'failed' else 'waiting' end as state
    from project p left join deployment a on a.project_id = p.id and a.status = 'active'
    where p.org_id = ${org_id} and p.preview_of = ${project_id} and p.purged_at is null order by p.id desc`.execute(db);
  return rows;
}
