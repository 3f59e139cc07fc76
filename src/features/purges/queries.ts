import { sql } from "kysely";
import type { Columns, Db, Tx } from "../../store/database.ts";
import { claimRow, holds, type InProgress, type Lease } from "../../store/leases.ts";
import { changeProject, type ProjectKey } from "../projects/projects.ts";

export async function insertPurge(tx: Tx, purge: ProjectKey & { id: string; requested_by: string }): Promise<void> {
  const running = sql.lit<"running">("running");
  await tx
    .insertInto("project_purge")
    .values(purge)
    .onConflict((on) => on.column("project_id").where("status", "=", running).doNothing())
    .execute();
}

export async function runningPurge(db: Db | Tx, { org_id, project_id }: ProjectKey): Promise<string | undefined> {
  const row = await db
    .selectFrom("project_purge")
    .select("id")
    .where(({ and }) => and({ org_id, project_id, status: "running" }))
    .executeTakeFirst();
  return row?.id;
}

export async function purgeState(db: Db | Tx, orgId: string, id: string) {
  return db
    .selectFrom("project_purge")
    .select(["status", "backup_id", "problem"])
    .where(({ and }) => and({ org_id: orgId, id }))
    .executeTakeFirst();
}

export async function isPurged(db: Db | Tx, { org_id, project_id }: ProjectKey): Promise<boolean> {
  const row = await db
    .selectFrom("project")
    .select("purged_at")
    .where(({ and }) => and({ org_id, id: project_id }))
    .executeTakeFirst();
  return row !== undefined && row.purged_at !== null;
}

export interface TakenPurge extends ProjectKey, Columns<"project_purge", "id" | "fence" | "backup_id" | "database_id"> {
  readonly project_number: number;
  readonly slug: string;
  readonly preview_of: string | null;
}

/** Claims the oldest running purge that no live worker holds. */
export function takePurge(db: Db, owner: string, inProgress: InProgress): Promise<TakenPurge | undefined> {
  return claimRow<TakenPurge>(db, {
    ...{ table: "project_purge", owner, inProgress, order: "created_at" },
    due: sql`q.status = 'running'`,
    from: sql`join project p on p.id = q.project_id`,
    returning: sql`t.id, t.org_id, t.project_id, t.fence, t.backup_id, t.database_id, p.number as project_number, p.slug, p.preview_of`,
  });
}

/** Releases a running purge, to be claimed again after the pause. */
export async function releasePurge(db: Db, lease: Lease, pauseSeconds: number): Promise<void> {
  await db
    .updateTable("project_purge")
    .set({ lease_owner: null, lease_until: sql`now() + make_interval(secs => ${pauseSeconds})` })
    .where(holds(lease))
    .where("status", "=", "running")
    .execute();
}

/** Records the final backup, or the database whose row is deleted in the same transaction. */
export async function updatePurge(
  tx: Tx,
  lease: Lease,
  change: { readonly backup_id?: string; readonly database_id?: string },
): Promise<void> {
  await tx.updateTable("project_purge").set(change).where(holds(lease)).execute();
}

export async function endPurge(tx: Tx, lease: Lease, problem: string | null): Promise<boolean> {
  const done = await tx
    .updateTable("project_purge")
    .set({
      status: problem === null ? "completed" : "failed",
      problem,
      finished_at: sql`now()`,
      lease_owner: null,
      lease_until: null,
    })
    .where(holds(lease))
    .where("status", "=", "running")
    .executeTakeFirst();
  return done.numUpdatedRows === 1n;
}

/** Returns whether the project has a build or deployment that has not ended, or a branch that is not deleted yet. */
export async function isBusy(db: Db, { org_id, project_id }: ProjectKey): Promise<boolean> {
  const { rows } = await sql`
    select 1 from build where org_id = ${org_id} and project_id = ${project_id} and status in ('queued', 'running')
    union all select 1 from deployment where org_id = ${org_id} and project_id = ${project_id} and status in ('pending', 'starting')
    union all select 1 from database_branch where org_id = ${org_id} and ${project_id} in (project_id, used_by)
    limit 1`.execute(db);
  return rows.length > 0;
}

export async function historyOf(db: Db, { org_id, project_id }: ProjectKey) {
  const idsOf = async (table: "deployment" | "build") =>
    (
      await db
        .selectFrom(table)
        .select("id")
        .where(({ and }) => and({ org_id, project_id }))
        .execute()
    ).map(({ id }) => id);
  return { deployments: await idsOf("deployment"), builds: await idsOf("build") };
}

/** Deletes the database's row; returns false when a worker holds it. The caller deletes its files afterwards. */
export async function deleteDatabaseRow(tx: Tx, { org_id, project_id }: ProjectKey): Promise<boolean> {
  for (const table of ["backup_operation", "restored_database"] as const)
    await tx.deleteFrom(table).where("org_id", "=", org_id).where("project_id", "=", project_id).execute();
  const done = await sql`delete from project_database where org_id = ${org_id} and project_id = ${project_id}
    and (lease_until is null or lease_until <= now())`.execute(tx);
  return done.numAffectedRows === 1n;
}

/** Marks all backups of the project but one for deletion. */
export async function expireOtherBackups(tx: Tx, { org_id, project_id }: ProjectKey, kept: string | null) {
  await sql`update backup set expired_at = now() where org_id = ${org_id} and project_id = ${project_id}
    and expired_at is null and id is distinct from ${kept}`.execute(tx);
}

/** Tables whose rows go with a purged project, in an order that foreign keys allow. What audits need is kept. */
const emptiedTables = [
  "earlier_name",
  "project_follow",
  "image_pruning",
  "process_setting",
  "run",
  "database_tunnel",
  "replica",
  "replica_usage",
  "replica_metric",
  "project_metric",
  "edge_counter",
  "project_health",
  "page_look",
  "disk_use",
  "storage_snapshot",
  "cron_run",
  "cron_job",
  "domain",
  "project_variable",
  "deployment",
  "build",
] as const;

/** Deletes the project's rows and frees its slug and hostname. */
export async function deleteProjectRows(tx: Tx, project: ProjectKey): Promise<void> {
  for (const table of emptiedTables)
    await sql`delete from ${sql.table(table)} where project_id = ${project.project_id}`.execute(tx);
  await changeProject(tx, project, { purged_at: sql`now()` });
}

/** Returns projects that were deleted before a time and have no purge that is running or has failed after `retryBefore`. */
export async function purgeableProjects(db: Db, deletedBefore: Date, retryBefore: Date) {
  const { rows } = await sql<ProjectKey>`
    select p.org_id, p.id as project_id from project p
    where p.deleted_at < ${deletedBefore} and p.purged_at is null
      and not exists (select 1 from project_purge u where u.project_id = p.id
        and (u.status = 'running' or u.finished_at > ${retryBefore}))`.execute(db);
  return rows;
}
