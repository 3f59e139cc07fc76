import type { Page } from "../../kit/page.ts";
import { sql, type RawBuilder } from "kysely";
import type { Columns, Db, Tx } from "../../store/database.ts";
import { claimRow, holds, type InProgress, type Lease } from "../../store/leases.ts";
import { provenNow } from "../../store/proven-time.ts";

const shown = [
  ...(["id", "number", "status", "command", "deployment", "timeout_seconds", "exit_code", "requested_by"] as const),
  "terminal",
  ...(["created_at", "started_at", "finished_at"] as const),
] as const;

interface ProjectKey {
  readonly org_id: string;
  readonly project_id: string;
}

/** Returns the newest runs, or the newest before the cursor; one more than a page shows. */
export async function listRuns(db: Db | Tx, { org_id, project_id }: ProjectKey, { cursor, limit }: Page<number>) {
  const query = db.selectFrom("run").select(shown).where("org_id", "=", org_id).where("project_id", "=", project_id);
  return (cursor === undefined ? query : query.where("number", "<", cursor))
    .orderBy("number", "desc")
    .limit(limit + 1)
    .execute();
}

export async function getRun(db: Db | Tx, { org_id, project_id }: ProjectKey, number: number) {
  return db
    .selectFrom("run")
    .select(shown)
    .where(({ and }) => and({ org_id, project_id, number }))
    .executeTakeFirst();
}

export interface NewRun
  extends
    ProjectKey,
    Columns<"run", "id" | "deployment_id" | "deployment" | "command" | "timeout_seconds" | "requested_by">,
    Columns<"run", "terminal"> {
  /** Null: a cron job. */
  readonly token_id: string | null;
}

/** Returns the token that requested a run with a terminal; undefined for other runs. */
export async function terminalOwner(db: Db | Tx, { org_id, project_id }: ProjectKey, number: number) {
  return db
    .selectFrom("run")
    .select("token_id")
    .where(({ and }) => and({ org_id, project_id, number, terminal: true }))
    .executeTakeFirst();
}

/** Inserts a run. The caller must have locked the project, because this assigns the run's number. */
export async function insertRun(tx: Tx, run: NewRun) {
  return tx
    .insertInto("run")
    .values({
      ...run,
      number: sql<number>`(select coalesce(max(number), 0) + 1 from run where project_id = ${run.project_id})`,
    })
    .returning(["id", "number"])
    .executeTakeFirstOrThrow();
}

export async function runById(db: Db, id: string) {
  return db.selectFrom("run").select(shown).where("id", "=", id).executeTakeFirst();
}

/** Returns how many of the project's runs have not ended, those of cron jobs left out. */
export async function openRuns(tx: Tx, { org_id, project_id }: ProjectKey): Promise<number> {
  const { count } = await tx
    .selectFrom("run")
    .select(sql<number>`count(*)::integer`.as("count"))
    .where(({ and }) => and({ org_id, project_id }))
    .where("status", "in", ["queued", "running"])
    .where("token_id", "is not", null)
    .executeTakeFirstOrThrow();
  return count;
}

/** Returns the deployment with this number if its image still exists; without a number, the active deployment. */
export async function runnableDeployment(tx: Tx, { org_id, project_id }: ProjectKey, number: number | undefined) {
  const query = tx
    .selectFrom("deployment")
    .select(["id", "number"])
    .where(({ and }) => and({ org_id, project_id }))
    .where("image_pruned_at", "is", null);
  return (
    number === undefined ? query.where("status", "=", "active") : query.where("number", "=", number)
  ).executeTakeFirst();
}

/** Cancels a queued run at once; asks the worker of a running one to end it. */
export async function requestCancel(tx: Tx, { org_id, project_id }: ProjectKey, number: number): Promise<void> {
  await sql`
    update run set cancel_requested = true, status = case status when 'queued' then 'cancelled' else status end,
      finished_at = case status when 'queued' then now() end
    where org_id = ${org_id} and project_id = ${project_id} and number = ${number} and status in ('queued', 'running')`.execute(
    tx,
  );
}

export interface TakenRun
  extends ProjectKey, Columns<"run", "id" | "deployment_id" | "command" | "timeout_seconds" | "terminal" | "fence"> {
  /** Its control plane ended during the run. */
  readonly abandoned: boolean;
}

/** Claims a queued run, or one whose worker is gone; returns undefined when there is none. */
export function takeRun(db: Db, owner: string, inProgress: InProgress): Promise<TakenRun | undefined> {
  return claimRun(db, owner, inProgress, sql`((q.status = 'queued' and not q.terminal) or q.status = 'running')`);
}

export async function takeTerminal(
  db: Db,
  owner: string,
  { open, inProgress }: { readonly open: readonly string[]; readonly inProgress: InProgress },
): Promise<TakenRun | undefined> {
  if (open.length === 0) return undefined;
  return claimRun(db, owner, inProgress, sql`q.status = 'queued' and q.terminal and q.id = any(${open}::text[])`);
}

function claimRun(db: Db, owner: string, inProgress: InProgress, due: RawBuilder<unknown>) {
  return claimRow<TakenRun>(db, {
    ...{ table: "run", owner, inProgress, order: "created_at", due },
    evenIfFull: sql`q.status = 'running'`,
    set: sql`, status = 'running', started_at = coalesce(q.started_at, now())`,
    returning: sql`t.id, t.org_id, t.project_id, t.deployment_id, t.command, t.timeout_seconds, t.terminal, t.fence, q.status = 'running' as abandoned`,
  });
}

/** Cancels runs whose terminal was not opened within a minute. */
export async function closeUnopened(db: Db): Promise<void> {
  await sql`update run set status = 'cancelled', finished_at = now()
    where terminal and status = 'queued' and created_at < now() - interval '1 minute'`.execute(db);
}

export async function isQueued(db: Db, id: string): Promise<boolean> {
  const row = await db.selectFrom("run").select("status").where("id", "=", id).executeTakeFirst();
  return row?.status === "queued";
}

/** Returns why a run may not continue, as a sentence; undefined as long as it may. */
export async function obstacleOf(db: Db, id: string): Promise<string | undefined> {
  const { rows } = await sql<{ cancelled: boolean; token_ended: boolean }>`
    select r.cancel_requested as cancelled, t.revoked_at is not null or coalesce(t.expires_at <= now(), false) as token_ended
    from run r join project p on p.id = r.project_id join organization o on o.id = r.org_id left join api_token t on t.id = r.token_id
    where r.id = ${id} and p.deleted_at is null and o.suspended_at is null`.execute(db);
  const [run] = rows;
  if (run === undefined) return "The project was deleted or its organization suspended, so the command was ended.";
  if (run.cancelled) return "The command was cancelled.";
  return run.token_ended
    ? "The token that requested the command was revoked or has expired, so it was ended."
    : undefined;
}

export type RunEnd = "succeeded" | "failed" | "timed_out" | "cancelled" | "interrupted";

/** Records how a run ended, unless the lease was lost. */
export async function endRun(db: Db, lease: Lease, status: RunEnd, exitCode: number | null): Promise<void> {
  await db
    .updateTable("run")
    .set({ status, exit_code: exitCode, finished_at: sql<string>`now()`, lease_until: null })
    .where(holds(lease))
    .where("status", "=", "running")
    .execute();
}

const batch = 500;

/** Deletes one batch of old runs; returns their ids, so that the caller can delete their output. */
export async function deleteOldRuns(db: Db, days: number): Promise<readonly string[]> {
  const { rows } = await sql<{ id: string }>`
    delete from run where id in (select id from run where created_at < ${provenNow} - make_interval(days => ${days}) and finished_at is not null
      order by created_at limit ${batch} for update skip locked) returning id`.execute(db);
  return rows.map(({ id }) => id);
}

/** Returns the ids of a project's runs, for deleting their output with the project. */
export async function runIds(db: Db | Tx, projectId: string): Promise<readonly string[]> {
  return (await db.selectFrom("run").select("id").where("project_id", "=", projectId).execute()).map(({ id }) => id);
}
