import { emptyFolderBytes } from "../../kit/folder-bytes.ts";
import type { Page } from "../../kit/page.ts";
import { sql } from "kysely";
import type { Columns, Db, Tx } from "../../store/database.ts";
import { lockProject, type ProjectKey } from "../projects/projects.ts";
import type { DailyState } from "./rules.ts";

const columns = [
  "backup.id",
  "backup.project_id",
  "backup.content",
  "backup.status",
  "backup.origin",
  "backup.created_at",
  "backup.finished_at",
  "backup.storage",
  "backup.size_bytes",
  "backup.sha256",
  "backup.engine_version",
  "backup.problem_code",
  "backup.problem",
  "backup.verification",
  "backup.verified_at",
  "running.kind",
  "running.phase",
  "running.bytes_done",
  "running.tables_done",
  "running.tables_total",
] as const;

// A project has at most one running operation, so the join adds no rows.
const shown = (db: Db | Tx, orgId: string) =>
  db
    .selectFrom("backup")
    .leftJoin("backup_operation as running", (join) =>
      join.onRef("running.backup_id", "=", "backup.id").on("running.status", "=", "running"),
    )
    .select(columns)
    .where("backup.org_id", "=", orgId)
    .where("backup.expired_at", "is", null);

/** Returns the newest backups of a project, or the newest before the cursor, each with its running operation; one more than a page shows. */
export async function listBackups(db: Db | Tx, orgId: string, projectId: string, { cursor, limit }: Page<string>) {
  const query = shown(db, orgId).where("backup.project_id", "=", projectId);
  return (cursor === undefined ? query : query.where("backup.id", "<", cursor))
    .orderBy("backup.id", "desc")
    .limit(limit + 1)
    .execute();
}

/** Returns one backup with its tables and the result of its last verification. */
export async function selectBackup(db: Db | Tx, orgId: string, id: string) {
  return shown(db, orgId)
    .select(["backup.row_counts", "backup.comparison", "backup.verification_problem"])
    .where("backup.id", "=", id)
    .executeTakeFirst();
}

/** Returns the completed backups of one project's database or files, newest first. */
export async function completedBackups(db: Db, { org_id, project_id }: ProjectKey, content: "database" | "files") {
  return db
    .selectFrom("backup")
    .select(["id", "created_at", "storage", "storage_key", "sha256"])
    .where(({ and }) => and({ org_id, project_id, content, status: "completed" }))
    .where("expired_at", "is", null)
    .orderBy("id", "desc")
    .execute();
}

export type CompletedBackup = Awaited<ReturnType<typeof completedBackups>>[number];

/** Returns where a completed backup's file is stored, its checksum, and the pieces of its index if it has one. */
export async function storedBackup(db: Db, orgId: string, id: string) {
  return db
    .selectFrom("backup")
    .select(["id", "org_id", "content", "storage", "storage_key", "sha256", "file_index"])
    .where(({ and }) => and({ org_id: orgId, id, status: "completed" }))
    .where("expired_at", "is", null)
    .executeTakeFirst();
}

export type StoredBackup = NonNullable<Awaited<ReturnType<typeof storedBackup>>>;
export type BackupRow = Awaited<ReturnType<typeof listBackups>>[number];
export type WholeBackupRow = NonNullable<Awaited<ReturnType<typeof selectBackup>>>;

/** Returns when the newest verified backup was taken; undefined when there is none. */
export async function newestVerifiedAt(db: Db | Tx, orgId: string, projectId: string): Promise<string | undefined> {
  const row = await db
    .selectFrom("backup")
    .select("created_at")
    .where(({ and }) => and({ org_id: orgId, project_id: projectId, content: "database", verification: "verified" }))
    .where("expired_at", "is", null)
    .orderBy("id", "desc")
    .limit(1)
    .executeTakeFirst();
  return row?.created_at;
}

/** Returns the newest completed backup of a project's database, or undefined. A backup dated in the future, left by a wrong clock, is chosen last. */
export async function newestCompleted(db: Db | Tx, orgId: string, projectId: string) {
  return shown(db, orgId)
    .where(({ and }) =>
      and({ "backup.project_id": projectId, "backup.content": "database", "backup.status": "completed" }),
    )
    .orderBy((of) => of("backup.created_at", ">", sql<string>`now()`))
    .orderBy("backup.id", "desc")
    .limit(1)
    .executeTakeFirst();
}

/** Returns the size of the newest completed backup's file; 0 when there is none. */
export async function newestSize(db: Db, orgId: string, projectId: string): Promise<number> {
  return (await newestCompleted(db, orgId, projectId))?.size_bytes ?? 0;
}

export type NewBackup = Columns<"backup", "id" | "org_id" | "project_id" | "content" | "origin">;

export async function insertBackup(tx: Tx, backup: NewBackup): Promise<void> {
  await tx.insertInto("backup").values(backup).execute();
}

export async function removeBackup(tx: Tx, orgId: string, id: string): Promise<void> {
  await tx.deleteFrom("backup").where("org_id", "=", orgId).where("id", "=", id).execute();
}

/** Returns the latest creation time that counts: a backup made while a clock was far ahead must not be the newest until that time has come. */
function believable(now: Date) {
  return sql<string>`${now}::timestamptz + interval '1 hour'`;
}

type DailyBackup = Pick<NewBackup, "org_id" | "content">;

/** Returns for each database, and each project's files, when the last automatic backup was started and how it went. */
export async function dailyStates(db: Db, now: Date): Promise<readonly (DailyState & DailyBackup)[]> {
  const { rows } = await sql<DailyState & DailyBackup>`
    select d.org_id, d.project_id, d.content, d.ready_at, last.created_at as last_at, last.status as last_status,
      (select count(*)::int from backup f where f.org_id = d.org_id and f.project_id = d.project_id and f.content = d.content
        and f.origin = 'daily' and f.status = 'failed' and f.created_at <= ${believable(now)}
        and f.id > coalesce((select max(g.id) from backup g where g.org_id = d.org_id and g.project_id = d.project_id and g.content = d.content
          and g.origin = 'daily' and g.status = 'completed' and g.created_at <= ${believable(now)}), '')) as failures
    from (select org_id, project_id, 'database' as content, ready_at from project_database where status = 'ready'
      union all select u.org_id, u.project_id, 'files', q.created_at from disk_use u join project q on q.id = u.project_id
        where q.storage and u.storage_bytes > ${emptyFolderBytes}) d
    join project p on p.id = d.project_id and p.deleted_at is null and p.preview_of is null
    join organization o on o.id = d.org_id and o.suspended_at is null
    left join lateral (select b.created_at, b.status from backup b
      where b.org_id = d.org_id and b.project_id = d.project_id and b.content = d.content and b.origin = 'daily'
        and b.created_at <= ${believable(now)}
      order by b.id desc limit 1) last on true`.execute(db);
  return rows;
}

/** Locks the project and returns when its newest automatic backup was started, so that a second caller sees the first one's. */
export async function lockDaily(tx: Tx, project: ProjectKey & Pick<NewBackup, "content">, now: Date) {
  const { org_id, project_id, content } = project;
  await lockProject(tx, project);
  const row = await tx
    .selectFrom("backup")
    .select("created_at")
    .where(({ and }) => and({ org_id, project_id, content, origin: "daily" }))
    .where("created_at", "<=", believable(now))
    .orderBy("id", "desc")
    .limit(1)
    .executeTakeFirst();
  return row?.created_at ?? null;
}

// Backups of files share their pieces, which are counted where they are stored.
const localBytes = sql<number>`case when backup.storage = 'disk' and backup.content = 'database'
  then coalesce(backup.size_bytes, 0) else 0 end`;

/** Returns how many manual backups of this content a project keeps, how much of the local disk they take, and the largest of them. */
export async function keptBackups(
  db: Db | Tx,
  { org_id, project_id, content }: ProjectKey & Pick<NewBackup, "content">,
) {
  const { rows } = await sql<{ manual: number; local_bytes: number; largest_bytes: number }>`
    select (count(*) filter (where origin = 'manual'))::integer as manual, coalesce(sum(${localBytes}), 0)::bigint as local_bytes,
      coalesce(max(${localBytes}), 0)::bigint as largest_bytes
    from backup where org_id = ${org_id} and project_id = ${project_id} and content = ${content} and status = 'completed'
      and expired_at is null`.execute(db);
  return rows[0] ?? { manual: 0, local_bytes: 0, largest_bytes: 0 };
}

/** Returns all ended backups of one or all living projects, for retention to choose from; backups of deleted projects are kept. */
export async function endedBackups(db: Db, project?: ProjectKey) {
  const query = db
    .selectFrom("backup")
    .innerJoin("project", "project.id", "backup.project_id")
    .select([
      "backup.id",
      "backup.org_id",
      "backup.project_id",
      "backup.content",
      "backup.origin",
      "backup.status",
      "backup.created_at",
      "backup.verification",
      "project.backups_limit_bytes",
      localBytes.as("local_bytes"),
    ])
    .where("backup.status", "in", ["completed", "failed"])
    .where("backup.expired_at", "is", null)
    .where("project.deleted_at", "is", null);
  if (project === undefined) return query.execute();
  const { org_id, project_id } = project;
  return query.where("backup.org_id", "=", org_id).where("backup.project_id", "=", project_id).execute();
}

export async function finalBackups(db: Db) {
  return db
    .selectFrom("backup")
    .innerJoin("project", "project.id", "backup.project_id")
    .select(["backup.id", "backup.org_id", "backup.created_at", localBytes.as("local_bytes")])
    .where("backup.status", "=", "completed")
    .where("backup.expired_at", "is", null)
    .where("project.purged_at", "is not", null)
    .execute();
}

/** Marks a backup for deletion unless an operation uses it. */
export async function expireBackup(db: Db, orgId: string, id: string): Promise<void> {
  await db
    .updateTable("backup")
    .set({ expired_at: sql`now()` })
    .where(({ and }) => and({ org_id: orgId, id }))
    .where(({ not, exists, selectFrom }) =>
      not(
        exists(selectFrom("backup_operation").select("id").where("backup_id", "=", id).where("status", "=", "running")),
      ),
    )
    .execute();
}

/** Returns the backups that are marked for deletion and not used by any operation. */
export async function expiredRows(db: Db) {
  return db
    .selectFrom("backup")
    .select(["id", "org_id", "storage", "storage_key"])
    .where("expired_at", "is not", null)
    .where(({ not, exists, selectFrom }) =>
      not(
        exists(
          selectFrom("backup_operation")
            .select("backup_operation.id")
            .whereRef("backup_operation.backup_id", "=", "backup.id")
            .where("backup_operation.status", "=", "running"),
        ),
      ),
    )
    .execute();
}

export async function deleteExpired(db: Db, orgId: string, id: string): Promise<void> {
  await db
    .deleteFrom("backup")
    .where(({ and }) => and({ org_id: orgId, id }))
    .where("expired_at", "is not", null)
    .execute();
}
