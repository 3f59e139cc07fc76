import { sql } from "kysely";
import type { CronRunStatus } from "../../contract/states.ts";
import type { Columns, Db, Tx } from "../../store/database.ts";
import { freshLease } from "../../store/leases.ts";
import { latestStartMs } from "./rules.ts";

/** Whether the command of a cron run has not ended: its run has the same id. */
const isCommandOpen = (run: string) =>
  sql`exists (select from run c where c.id = ${sql.ref(`${run}.id`)} and c.status in ('queued', 'running'))`;

/** A due job, locked. */
export interface DueJob {
  readonly id: string;
  readonly schedule: string;
  readonly next_run_at: string;
  /** Whether an earlier scheduled run of the job has not ended. */
  readonly busy: boolean;
}

/** Locks due jobs, the most recently due first, before the backlog of a downtime. Skips jobs that another scheduler has locked. */
export async function lockDueJobs(tx: Tx, now: Date, limit: number): Promise<readonly DueJob[]> {
  const due = await sql<DueJob>`select j.id, j.schedule, j.next_run_at, exists (
      select from cron_run r where r.job_id = j.id and r.status = 'running' and r.trigger = 'schedule'
        and (r.started_at is null or r.lease_until > now() or ${isCommandOpen("r")})) as busy
    from cron_job j where j.next_run_at <= ${now} order by j.next_run_at desc, j.id limit ${limit} for update of j skip locked`.execute(
    tx,
  );
  return due.rows;
}

/** The row of a due minute. A run that is to be executed has the status `running` and waits under the owner's lease. */
export interface NewRun {
  readonly id: string;
  readonly job_id: string;
  readonly scheduled_at: Date;
  readonly status: "running" | "skipped" | "missed";
  readonly reason: "overlap" | "too_late" | null;
}

export type WaitingRun = Columns<"cron_run", "id" | "job_id" | "project_id">;

/** Inserts due minutes, each at most once. Returns the newly inserted runs that are to be executed. */
export async function insertRuns(
  tx: Tx,
  owner: string,
  now: Date,
  runs: readonly NewRun[],
): Promise<readonly WaitingRun[]> {
  const inserted = await sql<WaitingRun & { status: string }>`insert into cron_run
      (id, org_id, project_id, job_id, trigger, scheduled_at, status, reason, finished_at, lease_owner, lease_until)
    select n.id, j.org_id, j.project_id, j.id, 'schedule', n.scheduled_at, n.status, n.reason,
      case when n.status <> 'running' then ${now}::timestamptz end,
      case when n.status = 'running' then ${owner} end, case when n.status = 'running' then ${freshLease} end
    from jsonb_to_recordset(${JSON.stringify(runs)}::jsonb)
      as n(id text, job_id text, scheduled_at timestamptz, status text, reason text) join cron_job j on j.id = n.job_id
    on conflict (job_id, scheduled_at) where trigger = 'schedule' do nothing
    returning id, job_id, project_id, status`.execute(tx);
  return inserted.rows.filter((row) => row.status === "running");
}

export interface NextMinute {
  readonly id: string;
  readonly next_run_at: Date;
}

export async function setNextMinutes(tx: Db | Tx, jobs: readonly NextMinute[]): Promise<void> {
  await sql`update cron_job set next_run_at = n.next_run_at
    from jsonb_to_recordset(${JSON.stringify(jobs)}::jsonb) as n(id text, next_run_at timestamptz)
    where cron_job.id = n.id`.execute(tx);
}

export async function laterJobs(db: Db, now: Date, page: { readonly afterId: string; readonly limit: number }) {
  return db
    .selectFrom("cron_job")
    .select(["id", "schedule", "next_run_at", "updated_at"])
    .where("next_run_at", ">", now.toISOString())
    .where("id", ">", page.afterId)
    .orderBy("id")
    .limit(page.limit)
    .execute();
}

/** Moves jobs' next minutes to earlier ones; never to later ones. */
export async function advanceNextMinutes(db: Db, jobs: readonly NextMinute[]): Promise<void> {
  await sql`update cron_job set next_run_at = n.next_run_at
    from jsonb_to_recordset(${JSON.stringify(jobs)}::jsonb) as n(id text, next_run_at timestamptz)
    where cron_job.id = n.id and cron_job.next_run_at > n.next_run_at`.execute(db);
}

/** Deletes the rows of minutes that are still to come and were never called: the clock was ahead when they were written. */
export async function deleteFutureRuns(db: Db, now: Date): Promise<void> {
  await sql`delete from cron_run where scheduled_at > ${now} and started_at is null and trigger = 'schedule'`.execute(
    db,
  );
}

/** Returns when the next job is due; null when there are no jobs. */
export async function nextMinute(db: Db): Promise<string | null> {
  const row = await db
    .selectFrom("cron_job")
    .select((of) => of.fn.min("next_run_at").as("next"))
    .executeTakeFirst();
  return row?.next ?? null;
}

/** Claims waiting runs without a holder: those that a request created, and those of schedulers that ended. */
export async function adoptRuns(db: Db, owner: string, limit: number): Promise<readonly WaitingRun[]> {
  const adopted = await sql<WaitingRun>`update cron_run set lease_owner = ${owner}, lease_until = ${freshLease}
    where id in (select id from cron_run where status = 'running' and started_at is null
      and (lease_until is null or lease_until <= now()) order by scheduled_at limit ${limit} for update skip locked)
    returning id, job_id, project_id`.execute(db);
  return adopted.rows;
}

export interface ActiveDeployment {
  readonly id: string;
  readonly targets: readonly { readonly host: string; readonly port: number }[];
}

export async function activeDeployments(db: Db, projectIds: readonly string[]): Promise<readonly ActiveDeployment[]> {
  const found = await sql<ActiveDeployment>`select d.id, (
      select coalesce(jsonb_agg(jsonb_build_object('host', r.host, 'port', r.port) order by r.ordinal), '[]') from replica r
      where r.deployment_id = d.id and r.process = 'web' and r.state = 'running' and r.ready_attempt = r.attempt and r.ordinal < p.replicas) as targets
    from deployment d join project p on p.id = d.project_id
    where d.project_id = any(${projectIds}) and d.status = 'active'`.execute(db);
  return found.rows;
}

/** The parameters of a call, or the obstacle that prevents it. */
export interface StartedRun
  extends
    Columns<"cron_run", "id" | "org_id" | "project_id" | "scheduled_at">,
    Columns<"cron_job", "schedule" | "path" | "name">,
    Columns<"project", "hostname" | "replicas" | "sealed_cron_secret"> {
  readonly obstacle: string | null;
  readonly started_at: string;
  /** Null: it calls the path. */
  readonly command: string | null;
  readonly deployment: number;
  readonly deployment_id: string;
}

/** Marks the owner's waiting runs as called, or ends those not to be called. Marked ones are never called again; lost ones are missing. */
export async function startRuns(
  db: Db,
  owner: string,
  now: Date,
  ids: readonly string[],
): Promise<readonly StartedRun[]> {
  const oldest = new Date(now.getTime() - latestStartMs);
  const started = await sql<StartedRun>`with open as materialized (
      select r.id, j.schedule, j.path, j.command, j.name, d.number as deployment, p.hostname, p.replicas, p.sealed_cron_secret, d.id as deployment_id, case
          when o.suspended_at is not null then 'org_suspended'
          when p.deleted_at is not null then 'project_deleted'
          when not j.enabled and r.trigger = 'schedule' then 'disabled'
          when d.id is null then 'nothing_deployed'
          when r.scheduled_at < ${oldest} then 'too_late' end as obstacle
      from cron_run r join cron_job j on j.id = r.job_id join project p on p.id = r.project_id
        join organization o on o.id = r.org_id
        left join deployment d on d.project_id = p.id and d.status = 'active'
      where r.id = any(${ids}) and r.status = 'running' and r.started_at is null and r.lease_owner = ${owner}
      for update of r)
    update cron_run set
      status = case when obstacle is null then 'running' when obstacle = 'too_late' then 'missed' else 'skipped' end,
      reason = obstacle, deployment_id = open.deployment_id,
      lease_owner = case when obstacle is null then lease_owner end, lease_until = case when obstacle is null then ${freshLease} end,
      started_at = case when obstacle is null then ${now}::timestamptz end,
      finished_at = case when obstacle is not null then ${now}::timestamptz end
    from open where cron_run.id = open.id
    returning cron_run.id, cron_run.org_id, cron_run.project_id, obstacle, scheduled_at, started_at, schedule, path, command, name, deployment, hostname,
      replicas, open.deployment_id, sealed_cron_secret`.execute(db);
  return started.rows;
}

/** Returns whether a call, not a command, to one of these deployments is in progress. Calls of schedulers that died do not count. */
export async function isCalled(db: Db, deploymentIds: readonly string[]): Promise<boolean> {
  const open = await sql`select from cron_run where status = 'running' and deployment_id = any(${deploymentIds})
    and started_at is not null and lease_until > now() and not ${isCommandOpen("cron_run")} limit 1`.execute(db);
  return open.rows.length > 0;
}

export interface RunEnd extends Columns<"cron_run", "id" | "reason" | "http_status" | "response_excerpt"> {
  readonly status: Exclude<CronRunStatus, "running" | "skipped" | "missed">;
  readonly exit_code?: number | null;
  readonly duration_ms: number;
}

/** Stores the results of calls; skips runs that the owner has lost meanwhile. */
export async function finishRuns(db: Db, owner: string, ends: readonly RunEnd[]): Promise<void> {
  await sql`update cron_run set status = n.status, reason = n.reason, http_status = n.http_status, exit_code = n.exit_code,
      duration_ms = n.duration_ms, response_excerpt = n.response_excerpt, lease_owner = null, lease_until = null,
      finished_at = started_at + make_interval(secs => n.duration_ms / 1000.0)
    from jsonb_to_recordset(${JSON.stringify(ends)}::jsonb) as n(id text, status text, reason text, http_status integer, exit_code integer,
      duration_ms integer, response_excerpt text)
    where cron_run.id = n.id and cron_run.status = 'running' and cron_run.lease_owner = ${owner}`.execute(db);
}

/** Renews the leases of these runs. Skips leases with most of their time left, and rows that are locked. */
export async function renewRuns(db: Db, owner: string, ids: readonly string[]): Promise<void> {
  await sql`update cron_run set lease_until = ${freshLease} where id in (
      select id from cron_run where id = any(${ids}) and status = 'running' and lease_owner = ${owner}
      and lease_until < now() + interval '24 seconds' for update skip locked)`.execute(db);
}

/** Releases waiting runs, so that another scheduler can claim them at once. */
export async function releaseRuns(db: Db, owner: string, ids: readonly string[]): Promise<void> {
  await sql`update cron_run set lease_until = now() where id = any(${ids}) and status = 'running'
    and started_at is null and lease_owner = ${owner}`.execute(db);
}

/** Ends the runs whose scheduler ended during the call: their result is unknown, and they are not called again. Returns their number. */
export async function closeLostRuns(db: Db, now: Date): Promise<number> {
  const done = await sql`update cron_run set status = 'unknown', reason = 'interrupted', finished_at = ${now},
      lease_owner = null, lease_until = null
    where id in (select id from cron_run where status = 'running' and started_at is not null and lease_until <= now()
      and not ${isCommandOpen("cron_run")} for update skip locked)`.execute(db);
  return Number(done.numAffectedRows ?? 0n);
}

// An application chooses the 4 KiB of each run, so that a project with thousands of jobs keeps fewer runs of each.
const mostOfProject = 100_000;
const fewestOfJob = 10;

/** Deletes all but the newest runs of these jobs: `keep` of each, or an even share of what their project may keep. */
export async function pruneRuns(
  db: Db,
  jobIds: readonly string[],
  keep: number,
  ofProject: number = mostOfProject,
): Promise<void> {
  await sql`with job as (select id, project_id from cron_job where id = any(${jobIds}::text[])),
      kept as (select project_id, least(${keep}::bigint, greatest(${fewestOfJob}::bigint, ${ofProject}::bigint / count(*))) as runs
        from cron_job where project_id in (select project_id from job) group by project_id)
    delete from cron_run r using job join kept on kept.project_id = job.project_id, lateral (
      select scheduled_at, id from cron_run where job_id = job.id
      order by scheduled_at desc, id desc offset kept.runs limit 1) as newest_surplus
    where r.job_id = job.id and r.status <> 'running'
      and (r.scheduled_at, r.id) <= (newest_surplus.scheduled_at, newest_surplus.id)`.execute(db);
}
