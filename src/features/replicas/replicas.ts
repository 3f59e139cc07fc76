import { sql } from "kysely";
import { changedProjects } from "../../store/changed-projects.ts";
import type { Columns, Db } from "../../store/database.ts";

export type ReplicaState = "starting" | "running" | "draining" | "exited" | "stopped";

export interface ReplicaRow extends Columns<
  "replica",
  "ordinal" | "attempt" | "restarts" | "next_start_at" | "host" | "port"
> {
  readonly state: ReplicaState;
  /** The start that passed its health check; 0 while the replica must not get traffic. */
  readonly ready_attempt: number;
  /** When its state last changed. */
  readonly since: string;
}

/** Returns the replicas of a deployment that is being released, with exit codes of those that ended. */
export async function releasedReplicas(db: Db, deploymentId: string) {
  return db
    .selectFrom("replica")
    .select(["process", "ordinal", "attempt", "state", "host", "port", "exit_code", "out_of_memory"])
    .select(sql<number>`(extract(epoch from now() - since) * 1000)::integer`.as("since_ms"))
    .where("deployment_id", "=", deploymentId)
    .execute();
}

/** A process type of a deployment, with its replicas: it should be running, or something of it is left. */
export interface WorkloadRow
  extends
    Columns<"deployment", "org_id" | "project_id" | "number" | "health_path">,
    Columns<"project", "slug" | "hostname" | "replicas" | "deleted_at" | "sleep"> {
  /** Its name in the runtime; see `workloadId`. */
  readonly id: string;
  readonly deployment_id: string;
  readonly process: string;
  readonly status: string;
  /** The type must not run twice and a deployment in progress is about to start it, so this one stops first. */
  readonly yields: boolean;
  /** The type must not run twice, and another deployment still has replicas of it. */
  readonly waits: boolean;
  /** Replicas started before this time are restarted. */
  readonly restart_at: string | null;
  /** When the replicas that are to stop may start to drain. */
  readonly ending_since: string | null;
  readonly suspended_at: string | null;
  readonly replica_rows: readonly ReplicaRow[];
}

/** What to read: the projects that changed since a snapshot (null: all), or the projects of these workloads, whose rows are always included. */
type Asked = { readonly since: string | null } | { readonly ids: readonly string[] };

export interface WorkloadChanges {
  /** The transaction snapshot of this read; the next read returns only what changed after it. */
  readonly snapshot: string;
  /** The projects that were read, including those without workloads. */
  readonly projects: readonly string[];
  readonly workloads: readonly WorkloadRow[];
}

/**
 * Returns the process types of the deployments that this machine runs or should run. A workload that another machine runs belongs to that
 * machine; one without a machine may run on any. The result depends only on rows whose changes `route_change` records.
 */
export async function changedWorkloads(db: Db, machine: string, asked: Asked): Promise<WorkloadChanges> {
  const deployments = "ids" in asked ? asked.ids.map((id) => parseWorkloadId(id).deployment_id) : [];
  const projects =
    "ids" in asked
      ? sql`select distinct project_id from deployment where id = any(${deployments}::text[])`
      : changedProjects(asked.since);
  const { rows } = await sql<WorkloadChanges>`
    with changed as materialized (${projects}),
    -- "offset 0" keeps the planner from joining whole tables, which it does while their statistics are older than their rows.
    workload as (
      select w.* from changed c
      cross join lateral (
        select d.id from project p join organization o on o.id = p.org_id join deployment d on d.project_id = p.id
        where p.id = c.project_id and d.status = 'active' and p.deleted_at is null and o.suspended_at is null
          and not exists (select from replica r where r.deployment_id = d.id and r.machine <> ${machine} and r.state <> 'stopped')
        union select deployment_id from replica where project_id = c.project_id and machine = ${machine} and state <> 'stopped'
        union select id from deployment where id = any(${deployments}::text[]) and project_id = c.project_id
        offset 0) wanted
      cross join lateral (
        select case when t.process = 'web' then d.id else d.id || '.' || t.process end as id, d.id as deployment_id, t.process,
          d.org_id, d.project_id, d.number, d.status, d.health_path, p.slug, p.hostname, t.replicas, t.restart_at, p.deleted_at, p.sleep, o.suspended_at,
          not t.overlap and d.status = 'active' and exists (select from deployment n
            where n.project_id = d.project_id and n.status = 'starting' and n.taking_over) as yields,
          not t.overlap and exists (select from replica r where r.project_id = d.project_id and r.state <> 'stopped'
            and r.process = t.process and r.deployment_id <> d.id) as waits,
          coalesce(d.retired_at, p.deleted_at, o.suspended_at, case when p.sleep = 'asleep' then p.sleep_at end, case when d.status = 'active' then p.updated_at end) as ending_since,
          coalesce((select json_agg(to_json(r) order by r.ordinal) from replica r
            where r.deployment_id = d.id and r.process = t.process and (r.machine is null or r.machine = ${machine})), '[]') as replica_rows
        from deployment d join deployment_process t on t.deployment_id = d.id
          join project p on p.id = d.project_id join organization o on o.id = d.org_id
        where d.id = wanted.id
        offset 0) w)
    select pg_current_snapshot()::text as snapshot, (select coalesce(json_agg(project_id), '[]') from changed) as projects,
      (select coalesce(json_agg(to_json(w)), '[]') from workload w) as workloads`.execute(db);
  const [found] = rows;
  if (found === undefined) throw new Error("the workloads could not be read");
  return found;
}

export interface WorkloadKey {
  readonly deployment_id: string;
  readonly process: string;
}

export interface ReplicaKey extends WorkloadKey {
  readonly org_id: string;
  readonly ordinal: number;
}

export interface ReplicaAttempt extends ReplicaKey {
  readonly attempt: number;
}

/** Reserves the number of the replica's next start on this machine, above `seen`, the number of a start already known to the runtime. */
export async function claimAttempt(db: Db, key: ReplicaKey, machine: string, seen = 0): Promise<number> {
  const state = { state: "starting", machine, host: null, port: null, ready_attempt: 0 } as const;
  const row = await db
    .insertInto("replica")
    .values({ ...key, ...state, attempt: seen + 1 })
    .onConflict((on) =>
      on
        .columns(["deployment_id", "process", "ordinal"])
        .doUpdateSet({ ...state, since: sql`now()`, attempt: sql`greatest(replica.attempt, ${seen}) + 1` }),
    )
    .returning("attempt")
    .executeTakeFirstOrThrow();
  return row.attempt;
}

/** Records that the replica runs at this address; it gets traffic once it is ready. */
export async function markRunning(
  db: Db,
  replica: ReplicaAttempt & { readonly machine: string; readonly host: string | null; readonly port: number | null },
): Promise<void> {
  const { attempt, machine, host, port } = replica;
  const state = { state: "running", attempt, machine, host, port } as const;
  await db
    .insertInto("replica")
    .values({ ...replica, state: "running" })
    .onConflict((on) =>
      on
        .columns(["deployment_id", "process", "ordinal"])
        .doUpdateSet({ ...state, since: sql`now()` })
        .where("replica.attempt", "<=", attempt),
    )
    .execute();
}

export async function markReady(db: Db, { deployment_id, process, ordinal, attempt }: ReplicaAttempt): Promise<void> {
  await db
    .updateTable("replica")
    .set({ ready_attempt: attempt })
    .where(({ and }) => and({ deployment_id, process, ordinal, attempt, state: "running" }))
    .execute();
}

/** Takes these replicas out of the routes: they get no new requests, whatever other rows say. */
export async function markDraining(db: Db, workload: WorkloadKey, ordinals: readonly number[]): Promise<void> {
  await db
    .updateTable("replica")
    .set({ state: "draining", ready_attempt: 0, since: sql`now()` })
    .where(({ and }) => and({ deployment_id: workload.deployment_id, process: workload.process }))
    .where("ordinal", "in", [...ordinals])
    .where("state", "in", ["starting", "running"])
    .execute();
}

/** Keeps a replica that was to stop; it gets traffic again after its next health check. */
export async function markKept(db: Db, workload: WorkloadKey, ordinal: number): Promise<void> {
  await db
    .updateTable("replica")
    .set({ state: "running", since: sql`now()` })
    .where("deployment_id", "=", workload.deployment_id)
    .where("process", "=", workload.process)
    .where("ordinal", "=", ordinal)
    .where("state", "=", "draining")
    .execute();
}

/** Records that these replicas are gone. Their start numbers are kept as long as the deployment can run again. */
export async function markStopped(
  db: Db,
  workload: WorkloadKey,
  { ordinals, forGood }: { readonly ordinals: readonly number[]; readonly forGood: boolean },
): Promise<void> {
  if (forGood) {
    await db
      .deleteFrom("replica")
      .where(({ and }) => and({ deployment_id: workload.deployment_id, process: workload.process }))
      .where("ordinal", "in", [...ordinals])
      .execute();
    return;
  }
  await db
    .updateTable("replica")
    .set({ state: "stopped", ready_attempt: 0, host: null, port: null, since: sql`now()` })
    .where(({ and }) => and({ deployment_id: workload.deployment_id, process: workload.process }))
    .where("ordinal", "in", [...ordinals])
    .execute();
}

export interface CrashRow extends ReplicaAttempt {
  readonly exit_code: number | null;
  readonly out_of_memory: boolean;
  readonly restarts: number;
  /** False if its machine was lost, which is no crash of the application. */
  readonly counts: boolean;
  readonly pauseMs: number;
}

/** Records that a replica ended and will start again after the pause. Returns false when this end was already recorded. */
export async function markCrashed(db: Db, crash: CrashRow): Promise<boolean> {
  const { attempt, pauseMs, counts, deployment_id, process, ordinal, org_id, ...how } = crash;
  const done = await db
    .updateTable("replica")
    .set({
      ...{ ...how, attempt, state: "exited", ready_attempt: 0, host: null, port: null },
      ...{ since: sql`now()`, exited_at: sql<string>`now()`, crashes: sql`crashes + ${counts ? 1 : 0}` },
      next_start_at: sql<string>`now() + make_interval(secs => ${pauseMs / 1000})`,
    })
    .where(({ and }) => and({ org_id, deployment_id, process, ordinal, attempt }))
    .where("state", "<>", "exited")
    .executeTakeFirst();
  return done.numUpdatedRows === 1n;
}

/** Returns the runtime's name for a process type of a deployment. */
export function workloadId({ deployment_id, process }: { deployment_id: string; process: string }): string {
  return process === web ? deployment_id : `${deployment_id}.${process}`;
}

/** The process type that receives requests. */
export const web = "web";

export function parseWorkloadId(id: string): { readonly deployment_id: string; readonly process: string } {
  const [deployment_id = "", process = web] = id.split(".");
  return { deployment_id, process };
}
