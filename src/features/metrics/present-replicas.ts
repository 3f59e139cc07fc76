import type { Result } from "../../contract/routes.ts";
import type { ReplicaBucket, selectReplicas, selectRestarts } from "./queries.ts";
import { rounded } from "./rules.ts";

interface Found {
  readonly replicas: Awaited<ReturnType<typeof selectReplicas>>;
  readonly used: readonly ReplicaBucket[];
  readonly restarts: Awaited<ReturnType<typeof selectRestarts>>;
}

/** Returns every replica that exists or existed in the range, with a bucket for each start time. */
export function presentReplicas(starts: readonly Date[], found: Found): Result<"metrics.get">["replicas"] {
  const present = new Map(found.replicas.map((replica) => [nameOf(replica), replica]));
  const used = new Map(found.used.map((bucket) => [`${nameOf(bucket)} ${bucket.at}`, bucket]));
  const restarts = new Map(found.restarts.map((row) => [`${nameOf(row)} ${row.at}`, row.restarts]));
  const all = new Map([...found.replicas, ...found.used, ...found.restarts].map((row) => [nameOf(row), row]));
  return [...all]
    .sort(([, a], [, b]) => rankOf(a).localeCompare(rankOf(b)) || a.ordinal - b.ordinal)
    .map(([name, { process, ordinal }]) => {
      const now = present.get(name);
      return {
        process,
        replica: ordinal,
        deployment: now?.deployment ?? null,
        ready: now?.ready ?? false,
        restarts: now?.restarts ?? 0,
        measured_at: now?.measured_at ?? null,
        memory_bytes: now?.memory_bytes ?? null,
        processes: now?.processes ?? null,
        buckets: starts.map((start) => {
          const key = `${name} ${start.toISOString()}`;
          return { at: start.toISOString(), ...presentUse(used.get(key)), restarts: restarts.get(key) ?? 0 };
        }),
      };
    });
}

interface Named {
  readonly process: string;
  readonly ordinal: number;
}

const nameOf = ({ process, ordinal }: Named): string => `${process}.${ordinal}`;
/** Sorts `web` first. */
const rankOf = ({ process }: Named): string => (process === "web" ? "" : process);

function presentUse(bucket: ReplicaBucket | undefined) {
  if (bucket === undefined) return { cpus: null, memory_bytes: null, memory_bytes_most: null, processes: null };
  return {
    cpus: bucket.seconds > 0 ? rounded(bucket.cpu_seconds / bucket.seconds) : null,
    memory_bytes: Math.round(bucket.memory_bytes_sum / bucket.samples),
    memory_bytes_most: bucket.memory_bytes_most,
    processes: bucket.processes_most,
  };
}
