import { sql } from "kysely";
import type { Db, Tx } from "../../store/database.ts";

export interface ProcessTypeRow {
  readonly deployment_id: string;
  readonly number: number;
  readonly process: string;
  readonly command: string;
  readonly replicas: number;
  readonly overlap: boolean;
}

/** Returns the process types of the active deployment, `web` first. */
export async function activeTypes(db: Db | Tx, orgId: string, projectId: string): Promise<readonly ProcessTypeRow[]> {
  const { rows } = await sql<ProcessTypeRow>`
    select t.deployment_id, d.number, t.process, t.command, t.replicas, t.overlap
    from deployment d join deployment_process t on t.deployment_id = d.id
    where d.org_id = ${orgId} and d.project_id = ${projectId} and d.status = 'active' order by t.process <> 'web', t.process`.execute(
    db,
  );
  return rows;
}

/** A replica of any of the project's deployments that has not ended for good. */
export interface RunningRow {
  readonly process: string;
  readonly ordinal: number;
  readonly number: number;
  readonly state: "starting" | "running" | "draining" | "exited";
  readonly ready: boolean;
  readonly active: boolean;
  readonly since: string;
  readonly restarts: number;
  readonly memory_bytes: number | null;
  readonly cpus: number | null;
}

/** Returns the project's replicas that have not ended for good, by process type, newest deployment first. */
export async function runningReplicas(db: Db | Tx, orgId: string, projectId: string): Promise<readonly RunningRow[]> {
  const { rows } = await sql<RunningRow>`
    select r.process, r.ordinal, d.number, r.state, r.ready_attempt = r.attempt as ready, d.status = 'active' as active, r.since, r.crashes as restarts,
      u.memory_bytes, m.cpus
    from deployment d join replica r on r.deployment_id = d.id
    left join replica_usage u on u.deployment_id = d.id and u.process = r.process and u.ordinal = r.ordinal and u.attempt = r.attempt
      and u.measured_at > now() - interval '5 minutes'
    left join lateral (select m.cpu_seconds / nullif(m.seconds, 0) as cpus from replica_metric m
      where m.project_id = d.project_id and m.bucket_seconds = 60 and m.process = r.process and m.ordinal = r.ordinal
        and m.at > now() - interval '5 minutes' order by m.at desc limit 1) m on d.status = 'active'
    where d.org_id = ${orgId} and d.project_id = ${projectId} and r.state <> 'stopped' and d.image_pruned_at is null
    order by r.process, d.number desc, r.ordinal`.execute(db);
  return rows;
}

export interface ProcessSetting {
  readonly org_id: string;
  readonly project_id: string;
  readonly process: string;
  readonly replicas?: number;
  readonly overlap?: boolean;
}

/** Saves a process type's settings; omitted ones stay unchanged. */
export async function saveSetting(tx: Tx, { org_id, project_id, process, ...given }: ProcessSetting) {
  return tx
    .insertInto("process_setting")
    .values({ org_id, project_id, process, ...given })
    .onConflict((on) => on.columns(["project_id", "process"]).doUpdateSet({ process, ...given }))
    .returning(["replicas", "overlap"])
    .executeTakeFirstOrThrow();
}

/** Requests that all replicas of this type started before now are restarted. */
export async function requestRestart(tx: Tx, setting: ProcessSetting): Promise<void> {
  await tx
    .insertInto("process_setting")
    .values({ ...setting, restart_at: sql<string>`now()` })
    .onConflict((on) => on.columns(["project_id", "process"]).doUpdateSet({ restart_at: sql<string>`now()` }))
    .execute();
}

/** Returns the progress of a requested restart: replicas still pending, and replicas that crashed. */
export async function restartState(db: Db, type: Pick<ProcessTypeRow, "deployment_id" | "process">) {
  const { rows } = await sql<{ pending: number; crashed: number; active: boolean }>`
    select d.status = 'active' as active,
      (select count(*)::integer from generate_series(0, t.replicas - 1) as o(ordinal)
        left join replica r on r.deployment_id = d.id and r.process = t.process and r.ordinal = o.ordinal
        where r.ordinal is null or r.since < t.restart_at or r.state <> 'running' or r.ready_attempt <> r.attempt) as pending,
      (select count(*)::integer from replica r where r.deployment_id = d.id and r.process = t.process and r.state = 'exited'
        and r.exited_at >= t.restart_at) as crashed
    from deployment d join deployment_process t on t.deployment_id = d.id and t.process = ${type.process}
    where d.id = ${type.deployment_id}`.execute(db);
  return rows[0] ?? { pending: 0, crashed: 0, active: false };
}
