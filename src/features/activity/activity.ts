import { sql } from "kysely";
import type { Query, Result } from "../../contract/routes.ts";
import { newId } from "../../kit/ids.ts";
import type { Columns, Db, Tx } from "../../store/database.ts";
import { provenNow } from "../../store/proven-time.ts";
import type { Caller, RefusalText } from "../context.ts";
import { selectEntries } from "./queries.ts";
import { formatEntryCursor, parseEntryCursor, presentEntry, type EntryRow } from "./rules.ts";

/** A change and who made it. `detail` holds names and numbers, never the values of variables or other secrets. */
export interface Activity extends Columns<
  "activity",
  "org_id" | "project_id" | "actor_token_id" | "actor_name" | "target"
> {
  /** For example `project.created`. */
  readonly action: string;
  readonly detail: Readonly<Record<string, unknown>>;
}

/** Records a change, in the transaction that makes it. */
export async function recordActivity(tx: Db | Tx, activity: Activity): Promise<void> {
  const row = { ...activity, id: newId("evt"), detail: JSON.stringify(activity.detail) };
  await tx.insertInto("activity").values(row).execute();
}

/** Something that the platform itself did or observed, such as a crash. */
export type PlatformEvent = Pick<Activity, "org_id" | "project_id" | "action"> &
  Partial<Pick<Activity, "target" | "detail">>;

export async function recordEvent(db: Db | Tx, event: PlatformEvent): Promise<void> {
  await recordActivity(db, { target: null, detail: {}, ...event, actor_token_id: null, actor_name: "berth" });
}

/** A replica that ended and will be started again. */
export interface ReplicaCrash extends Pick<Activity, "org_id"> {
  readonly project_id: string;
  readonly deployment: number;
  readonly process: string;
  readonly replica: number;
  readonly out_of_memory: boolean;
  readonly exit_code: number | null;
  readonly restarts: number;
  readonly next_start_in_ms: number;
}

/** Records a crash. Metrics and checks count these events by the numbers in `detail`; `target` is for people. */
export async function recordCrash(db: Db | Tx, crash: ReplicaCrash): Promise<void> {
  const { org_id, project_id, out_of_memory, ...detail } = crash;
  await recordEvent(db, {
    org_id,
    project_id,
    action: out_of_memory ? "replica.out_of_memory" : "replica.crashed",
    target: `deployment ${crash.deployment}, ${crash.process === "web" ? "replica" : crash.process} ${crash.replica}`,
    detail,
  });
}

export interface Reading {
  readonly tx: Db | Tx;
  readonly caller: Pick<Caller, "org_id" | "project_ids">;
  readonly fail: (code: "invalid_request", more?: RefusalText) => never;
}

/** Returns a page of the activity in the caller's organization, or in one of its projects, newest first. Refuses a malformed cursor. */
export async function readEntries(
  ctx: Reading,
  of: { readonly project_id?: string },
  { limit, kind, cursor }: Query<"activity.list">,
): Promise<{ readonly entries: Result<"activity.list">["activity"]; readonly next_cursor: string | null }> {
  const before = cursor === undefined ? undefined : parseEntryCursor(cursor);
  if (cursor !== undefined && before === undefined)
    return ctx.fail("invalid_request", { error: "cursor: use a next_cursor of this list unchanged." });
  const { org_id, project_ids } = ctx.caller;
  const rows = await selectEntries(ctx.tx, { ...of, org_id, project_ids, kinds: kind, before, limit: limit + 1 });
  const shown = rows.slice(0, limit);
  const next_cursor = rows.length > limit ? formatEntryCursor(shown.at(-1) as EntryRow) : null;
  return { entries: shown.map(presentEntry), next_cursor };
}

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

/** Deletes changes too old for any stream to resume from; returns their number. Keeps the newest, by which older cursors are recognised. */
export async function deleteOldChanges(db: Db): Promise<number> {
  const { numAffectedRows } = await sql`delete from change
    where at < now() - interval '1 hour' and at < (select at from change order by at desc limit 1)`.execute(db);
  return Number(numAffectedRows);
}

/** Deletes one batch of old deployments that nothing can roll back to, and of which the project has enough newer ones. */
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
