import type { Result } from "../../contract/routes.ts";
import type { ReplicaBucket, selectReplicas, selectRestarts } from "./queries.ts";
import { rounded } from "./rules.ts";

interface Found {
  readonly replicas: Awaited<ReturnType<typeof selectReplicas>>;
  readonly used: readonly ReplicaBucket[];
  readonly restarts: Awaited<ReturnType<typeof selectRestarts>>;
}

/** Every replica there is, or was in the range, with a bucket for each start. */
export function presentReplicas(starts: readonly Date[], found: Found): Result<"metrics.get">["replicas"] {
  const present = new Map(found.replicas.map((replica) => [replica.ordinal, replica]));
  const used = new Map(found.used.map((bucket) => [`${bucket.ordinal} ${bucket.at}`, bucket]));
  const restarts = new Map(found.restarts.map((row) => [`${row.ordinal} ${row.at}`, row.restarts]));
  const ordinals = new Set([...present.keys(), ...[...found.used, ...found.restarts].map((row) => row.ordinal)]);
  return [...ordinals]
    .sort((a, b) => a - b)
    .map((ordinal) => {
      const now = present.get(ordinal);
      return {
        replica: ordinal,
        deployment: now?.deployment ?? null,
        ready: now?.ready ?? false,
        restarts: now?.restarts ?? 0,
        measured_at: now?.measured_at ?? null,
        memory_bytes: now?.memory_bytes ?? null,
        processes: now?.processes ?? null,
        buckets: starts.map((start) => {
          const key = `${ordinal} ${start.toISOString()}`;
          return { at: start.toISOString(), ...presentUse(used.get(key)), restarts: restarts.get(key) ?? 0 };
        }),
      };
    });
}

function presentUse(bucket: ReplicaBucket | undefined) {
  if (bucket === undefined) return { cpus: null, memory_bytes: null, memory_bytes_most: null, processes: null };
  return {
    cpus: bucket.seconds > 0 ? rounded(bucket.cpu_seconds / bucket.seconds) : null,
    memory_bytes: Math.round(bucket.memory_bytes_sum / bucket.samples),
    memory_bytes_most: bucket.memory_bytes_most,
    processes: bucket.processes_most,
  };
}
