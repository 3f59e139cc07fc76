import { sql } from "kysely";
import { latencyBucketsMs, type EdgeUsage } from "../../ports/edge.ts";
import type { Columns, Db } from "../../store/database.ts";
import { provenNow } from "../../store/proven-time.ts";
import { countsOf } from "./rules.ts";

/**
 * Adds what edges counted since the last sample to the buckets at `at`. Counters only grow, so nothing is counted twice, however many
 * samplers read the same edge and however often; a reading older than the last one adds nothing. Unknown projects are skipped. A row of 15
 * seconds is one sample, from `from` on, so that the requests before and after a switch stay apart.
 */
export async function addTraffic(db: Db, usages: readonly EdgeUsage[], at: Date, from = at): Promise<void> {
  const sorted = usages.toSorted((one, other) => (one.project_id < other.project_id ? -1 : 1));
  // All edges store at the same time. Small batches in a common order let them alternate instead of waiting for another edge's whole set.
  for (let start = 0; start < sorted.length; start += atOnce)
    await addSomeTraffic(db, sorted.slice(start, start + atOnce), at, from);
}

const atOnce = 100;

async function addSomeTraffic(db: Db, usages: readonly EdgeUsage[], at: Date, from: Date): Promise<void> {
  const counters = [...new Set(usages.map((usage) => usage.counter))].sort();
  await db.transaction().execute(async (tx) => {
    // Before a counter's first sample there is no row that could be locked, so lock by name.
    for (const counter of counters)
      await sql`select pg_advisory_xact_lock(hashtextextended(${counter}, 0))`.execute(tx);
    await sql`
      with given as (
        select g.*, p.org_id from jsonb_to_recordset(${JSON.stringify(usages.map(countsOf))}::jsonb) as g(counter text, project_id text,
          requests bigint, classes bigint[], bytes_in bigint, bytes_out bigint, latencies bigint[], latency_sum_ms double precision)
        join project p on p.id = g.project_id),
      increase as (
        select g.project_id, g.org_id, g.requests - coalesce(b.requests, 0) as requests, ${eachCount("classes", (n) => `g.classes[${n}] - coalesce(b.classes[${n}], 0)`)} as classes,
          g.bytes_in - coalesce(b.bytes_in, 0) as bytes_in, g.bytes_out - coalesce(b.bytes_out, 0) as bytes_out,
          ${eachCount("latencies", (n) => `g.latencies[${n}] - coalesce(b.latencies[${n}], 0)`)} as latencies, g.latency_sum_ms - coalesce(b.latency_sum_ms, 0) as latency_sum_ms
        from given g left join edge_counter b on b.counter = g.counter and b.project_id = g.project_id
        where b.counter is null or (g.requests >= b.requests and g.bytes_in >= b.bytes_in and g.bytes_out >= b.bytes_out)),
      remembered as (
        insert into edge_counter (counter, project_id, requests, classes, bytes_in, bytes_out, latencies, latency_sum_ms)
        select counter, project_id, requests, classes, bytes_in, bytes_out, latencies, latency_sum_ms from given
        on conflict (counter, project_id) do update set requests = excluded.requests, classes = excluded.classes, bytes_in = excluded.bytes_in,
          bytes_out = excluded.bytes_out, latencies = excluded.latencies, latency_sum_ms = excluded.latency_sum_ms, seen_at = now()
        where excluded.requests >= edge_counter.requests and excluded.bytes_in >= edge_counter.bytes_in
          and excluded.bytes_out >= edge_counter.bytes_out)
      insert into project_metric as m (project_id, org_id, bucket_seconds, at, requests, errors, classes, bytes_in, bytes_out, latencies, latency_sum_ms)
      select i.project_id, i.org_id, w.seconds, case when w.seconds = 15 then ${from}::timestamptz else ${bucketAt(at)} end, i.requests, i.classes[5], i.classes, i.bytes_in, i.bytes_out, i.latencies, i.latency_sum_ms
      from (${sum()}) i cross join (values (15), (60), (900), (3600)) as w(seconds)
      where i.requests + i.bytes_in + i.bytes_out > 0
      order by i.project_id, w.seconds
      on conflict (project_id, bucket_seconds, at) do update set requests = m.requests + excluded.requests, errors = m.errors + excluded.errors,
        classes = ${eachCount("classes", (n) => `coalesce(m.classes[${n}], 0) + excluded.classes[${n}]`)}, bytes_in = m.bytes_in + excluded.bytes_in, bytes_out = m.bytes_out + excluded.bytes_out,
        latencies = ${eachCount("latencies", (n) => `coalesce(m.latencies[${n}], 0) + excluded.latencies[${n}]`)}, latency_sum_ms = m.latency_sum_ms + excluded.latency_sum_ms`.execute(
      tx,
    );
  });
}

/** One measurement of a replica. CPU seconds count from the start of the attempt. */
export type ReplicaSample = Columns<
  "replica_usage",
  "deployment_id" | "process" | "ordinal" | "attempt" | "cpu_seconds"
> &
  Columns<"replica_usage", "memory_bytes" | "processes">;

// After a longer gap it is unknown when the replica used its CPU time.
const longestGapSeconds = 300;

/** Adds measurements of replicas to the buckets at `at`. CPU time counts from the last measurement, even if another process took it. */
export async function addReplicaSamples(db: Db, samples: readonly ReplicaSample[], at: Date): Promise<void> {
  if (samples.length === 0) return;
  await sql`
    with given as (
      select g.*, d.org_id, d.project_id from jsonb_to_recordset(${JSON.stringify(samples)}::jsonb) as g(deployment_id text, process text, ordinal integer,
        attempt integer, cpu_seconds double precision, memory_bytes bigint, processes integer)
      join deployment d on d.id = g.deployment_id),
    used as (
      select g.*, case when b.attempt = g.attempt and g.cpu_seconds >= b.cpu_seconds then g.cpu_seconds - b.cpu_seconds else 0 end as cpu,
        case when b.attempt = g.attempt then extract(epoch from ${at}::timestamptz - b.measured_at) else 0 end as gap
      from given g left join replica_usage b on b.deployment_id = g.deployment_id and b.process = g.process
        and b.ordinal = g.ordinal),
    remembered as (
      insert into replica_usage (deployment_id, process, ordinal, org_id, project_id, attempt, cpu_seconds, memory_bytes, processes, measured_at)
      select deployment_id, process, ordinal, org_id, project_id, attempt, cpu_seconds, memory_bytes, processes, ${at} from given
      on conflict (deployment_id, process, ordinal) do update set attempt = excluded.attempt, cpu_seconds = excluded.cpu_seconds,
        memory_bytes = excluded.memory_bytes, processes = excluded.processes, measured_at = excluded.measured_at)
    insert into replica_metric as m (project_id, org_id, bucket_seconds, at, process, ordinal, samples, cpu_seconds, seconds, memory_bytes_sum,
      memory_bytes_most, processes_most)
    select project_id, org_id, w.seconds, ${bucketAt(at)}, process, ordinal, count(*),
      coalesce(sum(cpu) filter (where gap between 0 and ${longestGapSeconds}), 0), coalesce(sum(gap) filter (where gap between 0 and ${longestGapSeconds}), 0),
      sum(memory_bytes), max(memory_bytes), max(processes)
    from used cross join (values (60), (900), (3600)) as w(seconds) group by project_id, org_id, process, ordinal, w.seconds
    order by project_id, w.seconds, process, ordinal
    on conflict (project_id, bucket_seconds, at, process, ordinal) do update set samples = m.samples + excluded.samples,
      cpu_seconds = m.cpu_seconds + excluded.cpu_seconds, seconds = m.seconds + excluded.seconds,
      memory_bytes_sum = m.memory_bytes_sum + excluded.memory_bytes_sum,
      memory_bytes_most = greatest(m.memory_bytes_most, excluded.memory_bytes_most),
      processes_most = greatest(m.processes_most, excluded.processes_most)`.execute(db);
}

/** How long buckets are kept, by their width. The longest range shows hourly buckets. */
export interface MetricRetention {
  readonly hoursOfMinutes: number;
  readonly hoursOfQuarters: number;
  readonly days: number;
}

/** Deletes buckets that have expired; returns the number of rows. */
export async function pruneMetrics(
  db: Db,
  { hoursOfMinutes, hoursOfQuarters, days }: MetricRetention,
): Promise<number> {
  let deleted = 0n;
  const kept = [
    [15, 2 * 3600],
    [60, hoursOfMinutes * 3600],
    [900, hoursOfQuarters * 3600],
    [3600, days * 86_400],
  ] as const;
  for (const table of ["project_metric", "replica_metric", "machine_metric"] as const) {
    for (const [width, keptSeconds] of kept) {
      const done = await sql`delete from ${sql.table(table)} where bucket_seconds = ${width}
        and at < ${provenNow} - make_interval(secs => ${keptSeconds})`.execute(db);
      deleted += done.numAffectedRows ?? 0n;
    }
  }
  // Delete stale counters of edges, and usage of ended replicas an hour after their last measurement.
  await sql`delete from edge_counter where seen_at < now() - interval '2 days'`.execute(db);
  await sql`delete from replica_usage u using deployment d where d.id = u.deployment_id and d.status <> 'active'
    and u.measured_at < now() - interval '1 hour'`.execute(db);
  return Number(deleted);
}

function bucketAt(at: Date) {
  return sql`date_bin(make_interval(secs => w.seconds), ${at}::timestamptz, 'epoch'::timestamptz)`;
}

const counts = { classes: 5, latencies: latencyBucketsMs.length + 1 } as const;

/** Writes an array out element by element: a computed array costs twenty times as much, and there are millions a day. */
function eachCount(column: keyof typeof counts, element: (n: number) => string) {
  return sql.raw(`array[${Array.from({ length: counts[column] }, (_, at) => element(at + 1)).join()}]`);
}

/** Sums per project: a project may have several counters, for example of an edge and its replacement. */
function sum() {
  return sql`select project_id, org_id, sum(requests)::bigint as requests, ${eachCount("classes", (n) => `sum(classes[${n}])::bigint`)} as classes, sum(bytes_in)::bigint as bytes_in,
    sum(bytes_out)::bigint as bytes_out, ${eachCount("latencies", (n) => `sum(latencies[${n}])::bigint`)} as latencies, sum(latency_sum_ms) as latency_sum_ms
    from increase group by project_id, org_id`;
}
