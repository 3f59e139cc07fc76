import { sql } from "kysely";
import type { Db, Tx } from "../../store/database.ts";

export { addReplicaSamples, addTraffic, pruneMetrics, type MetricRetention, type ReplicaSample } from "./sampling.ts";
export * from "./page-probes.ts";
export { countRequests } from "./queries.ts";
export { bucketStarts, quantile, ranges } from "./rules.ts";
export { edgeFamilies, storedFamilies } from "./platform-families.ts";
export { expositionText, expositionType, type Family } from "./exposition.ts";

/** What a machine uses at one moment. */
interface MachineSample {
  readonly machine: string;
  /** Processors in use since the sample before. */
  readonly cpus: number;
  readonly memory_bytes: number;
  readonly disk_bytes: number;
}

export async function addMachineSample(db: Db, sample: MachineSample, at: Date): Promise<void> {
  await sql`
    insert into machine_metric as m (machine, bucket_seconds, at, samples, cpus_sum, memory_bytes_sum, disk_bytes_most)
    select ${sample.machine}, w.seconds, date_bin(make_interval(secs => w.seconds), ${at}::timestamptz, 'epoch'::timestamptz), 1,
      ${sample.cpus}::double precision, ${sample.memory_bytes}::bigint, ${sample.disk_bytes}::bigint
    from (values (60), (900), (3600)) as w(seconds)
    on conflict (machine, bucket_seconds, at) do update set samples = m.samples + 1, cpus_sum = m.cpus_sum + excluded.cpus_sum,
      memory_bytes_sum = m.memory_bytes_sum + excluded.memory_bytes_sum,
      disk_bytes_most = greatest(m.disk_bytes_most, excluded.disk_bytes_most)`.execute(db);
}

interface Range {
  readonly bucket_seconds: number;
  readonly from: Date;
}

/** Returns what each machine used: means of processors and memory, and the most of the disk. */
export async function selectMachineBuckets(db: Db | Tx, { bucket_seconds, from }: Range) {
  const { rows } = await sql<{ machine: string; at: string; cpus: number; memory_bytes: number; disk_bytes: number }>`
    select machine, at, cpus_sum / samples as cpus, (memory_bytes_sum / samples)::bigint as memory_bytes, disk_bytes_most as disk_bytes
    from machine_metric where bucket_seconds = ${bucket_seconds} and at >= ${from} order by machine, at`.execute(db);
  return rows;
}

/** Returns what all edges answered for all projects. */
export async function selectEdgeBuckets(db: Db | Tx, { bucket_seconds, from }: Range) {
  const { rows } = await sql<{ at: string; requests: number; errors: number; bytes_out: number }>`
    select at, sum(requests)::bigint as requests, sum(errors)::bigint as errors, sum(bytes_out)::bigint as bytes_out
    from project_metric where bucket_seconds = ${bucket_seconds} and at >= ${from} group by at`.execute(db);
  return rows;
}
