import { sql } from "kysely";
import type { Columns, Db, Tx } from "../../store/database.ts";
import type { Bucket } from "./rules.ts";

/** The project, start time and bucket width of a metrics query. */
export interface MetricsKey {
  readonly org_id: string;
  readonly project_id: string;
  readonly bucket_seconds: number;
  readonly from: Date;
}

export async function selectBuckets(db: Db | Tx, key: MetricsKey): Promise<ReadonlyMap<string, Bucket>> {
  const { rows } = await sql<Bucket & { at: string }>`
    select at, requests, errors, to_json(classes) as classes, bytes_in, bytes_out, to_json(latencies) as latencies, latency_sum_ms,
      looks, failed_looks, dns_looks, dns_ms, connect_ms, tls_looks, tls_ms, first_byte_ms, total_ms, slowest_ms
    from project_metric
    where org_id = ${key.org_id} and project_id = ${key.project_id} and bucket_seconds = ${key.bucket_seconds} and at >= ${key.from}`.execute(
    db,
  );
  return new Map(rows.map((row) => [row.at, row]));
}

export type ReplicaBucket = Columns<
  "replica_metric",
  "at" | "process" | "ordinal" | "samples" | "cpu_seconds" | "seconds"
> &
  Columns<"replica_metric", "memory_bytes_sum" | "memory_bytes_most" | "processes_most">;

export async function selectReplicaBuckets(db: Db | Tx, key: MetricsKey): Promise<readonly ReplicaBucket[]> {
  return db
    .selectFrom("replica_metric")
    .select([
      "at",
      "process",
      "ordinal",
      "samples",
      "cpu_seconds",
      "seconds",
      "memory_bytes_sum",
      "memory_bytes_most",
      "processes_most",
    ])
    .where(({ and }) => and({ org_id: key.org_id, project_id: key.project_id, bucket_seconds: key.bucket_seconds }))
    .where(sql<boolean>`at >= ${key.from}`)
    .execute();
}

/** Counts, per bucket, the ends of replicas that were started again. */
export async function selectRestarts(db: Db | Tx, key: MetricsKey) {
  const { rows } = await sql<{ at: string; process: string; ordinal: number; restarts: number; out_of_memory: number }>`
    select date_bin(make_interval(secs => ${key.bucket_seconds}), created_at, 'epoch'::timestamptz) as at,
      coalesce(detail->>'process', 'web') as process, coalesce((detail->>'replica')::integer, 0) as ordinal, count(*)::integer as restarts,
      (count(*) filter (where action = 'replica.out_of_memory'))::integer as out_of_memory
    from activity where project_id = ${key.project_id} and org_id = ${key.org_id} and created_at >= ${key.from}
      and action in ('replica.crashed', 'replica.out_of_memory')
    group by 1, 2, 3`.execute(db);
  return rows;
}

/** Returns the replicas that the active deployment has or should have, with their latest measurement. */
export async function selectReplicas(db: Db | Tx, orgId: string, projectId: string) {
  const { rows } = await sql<{
    process: string;
    ordinal: number;
    deployment: number;
    ready: boolean;
    restarts: number;
    measured_at: string | null;
    memory_bytes: number | null;
    processes: number | null;
  }>`
    select t.process, o.ordinal, d.number as deployment, coalesce(r.state = 'running' and r.ready_attempt = r.attempt, false) as ready,
      coalesce(r.crashes, 0) as restarts, u.measured_at, u.memory_bytes, u.processes
    from project p join deployment d on d.project_id = p.id and d.status = 'active'
    join deployment_process t on t.deployment_id = d.id cross join generate_series(0, t.replicas - 1) as o(ordinal)
    left join replica r on r.deployment_id = d.id and r.process = t.process and r.ordinal = o.ordinal
    left join replica_usage u on u.deployment_id = d.id and u.process = t.process and u.ordinal = o.ordinal
    where p.org_id = ${orgId} and p.id = ${projectId} order by t.process <> 'web', t.process, o.ordinal`.execute(db);
  return rows;
}

/** Returns the deployments that went live since a time, oldest first. */
export async function selectMarkers(db: Db | Tx, key: Omit<MetricsKey, "bucket_seconds">) {
  return db
    .selectFrom("deployment")
    .select(["id", "number", "trigger", "commit"])
    .select(sql<string>`activated_at`.as("at"))
    .where(({ and }) => and({ org_id: key.org_id, project_id: key.project_id }))
    .where(sql<boolean>`finished_at >= ${key.from} and activated_at >= ${key.from}`)
    .orderBy("activated_at")
    .execute();
}

/** Returns the latest probe of the first page; undefined before the first one. */
export async function selectPage(db: Db | Tx, orgId: string, projectId: string) {
  return db
    .selectFrom("page_look")
    .select(["looked_at", "http_status", "failure", "dns_ms", "connect_ms", "tls_ms", "first_byte_ms", "total_ms"])
    .where(({ and }) => and({ org_id: orgId, project_id: projectId }))
    .where("looked_at", "is not", null)
    .executeTakeFirst();
}

export async function countRequests(
  db: Db | Tx,
  project: { readonly org_id: string; readonly project_id: string },
  since: Date,
): Promise<number> {
  const { sum } = await db
    .selectFrom("project_metric")
    .select(sql<number>`coalesce(sum(requests), 0)::bigint`.as("sum"))
    .where(({ and }) => and({ org_id: project.org_id, project_id: project.project_id, bucket_seconds: 60 }))
    .where(sql<boolean>`at >= ${since}`)
    .executeTakeFirstOrThrow();
  return sum;
}
