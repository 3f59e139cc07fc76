import { sql } from "kysely";
import type { Db } from "../../store/database.ts";
import { provenNow } from "../../store/proven-time.ts";

export interface HistoryRetention {
  readonly days: number;
  /** Each project keeps this many of its newest deployments and builds, whatever their age. */
  readonly perProject: number;
}

// Small batches hold their row locks only briefly.
const batch = 500;

/** Deletes one batch of activity entries and ended approvals older than `days`; returns the number of rows. */
export async function deleteOldActivity(db: Db, { days }: HistoryRetention): Promise<number> {
  const activity = await sql`delete from activity where id in (
    select id from activity where created_at < ${provenNow} - make_interval(days => ${days}) order by created_at limit ${batch})`.execute(
    db,
  );
  const approvals = await sql`delete from approval where id in (
    select id from approval where status not in ('pending', 'approved') and created_at < ${provenNow} - make_interval(days => ${days})
    order by created_at limit ${batch})`.execute(db);
  return Number(activity.numAffectedRows) + Number(approvals.numAffectedRows);
}

/**
 * Deletes changes too old for any stream to resume from; returns their number. Keeps the newest change, so that older cursors can be
 * recognised as outdated.
 */
export async function deleteOldChanges(db: Db): Promise<number> {
  const { numAffectedRows } = await sql`delete from change
    where at < now() - interval '1 hour' and at < (select at from change order by at desc limit 1)`.execute(db);
  return Number(numAffectedRows);
}

/**
 * Deletes one batch of old deployments that nothing can roll back to: their image is gone, no kept deployment came from them, and the
 * project has enough newer ones.
 */
export async function deleteOldDeployments(db: Db, { days, perProject }: HistoryRetention): Promise<number> {
  return db.transaction().execute(async (tx) => {
    const { rows } = await sql<{ id: string }>`
      select d.id from deployment d where d.created_at < ${provenNow} - make_interval(days => ${days})
        and d.status in ('retired', 'failed', 'superseded') and (d.image_pruned_at is not null or d.activated_at is null)
        and d.number <= (select max(number) - ${perProject} from deployment n where n.org_id = d.org_id and n.project_id = d.project_id)
        and not exists (select from deployment c where c.rolled_back_from = d.id) and not exists (select from deployment c where c.restored_from = d.id)
      order by d.created_at limit ${batch} for update skip locked`.execute(tx);
    const ids = rows.map(({ id }) => id);
    if (ids.length === 0) return 0;
    await tx.deleteFrom("replica").where("deployment_id", "in", ids).execute();
    await tx.deleteFrom("deployment").where("id", "in", ids).execute();
    return ids.length;
  });
}

/** Deletes one batch of old builds that no deployment refers to; returns their ids, so that the caller can delete their logs. */
export async function deleteOldBuilds(db: Db, { days, perProject }: HistoryRetention): Promise<readonly string[]> {
  const { rows } = await sql<{ id: string }>`
    delete from build where id in (
      select b.id from build b where b.created_at < ${provenNow} - make_interval(days => ${days}) and b.finished_at is not null
        and b.number <= (select max(number) - ${perProject} from build n where n.org_id = b.org_id and n.project_id = b.project_id)
        and not exists (select from deployment d where d.build_id = b.id)
      order by b.created_at limit ${batch} for update skip locked) returning id`.execute(db);
  return rows.map(({ id }) => id);
}
