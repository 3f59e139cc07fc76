import type { Result } from "../../contract/routes.ts";
import type { Handlers } from "../context.ts";
import * as queries from "./queries.ts";
import type { ReplicaBucket, selectReplicas, selectRestarts } from "./queries.ts";
import { bucketStarts, presentBucket, ranges, rounded, sumOf } from "./rules.ts";

export const metrics: Handlers<"metrics"> = {
  async get(ctx, { query }) {
    const { range } = query;
    const { bucketSeconds } = ranges[range];
    const starts = bucketStarts(range, ctx.now);
    const from = starts[0] as Date;
    const key = { ...ctx.project.key, bucket_seconds: bucketSeconds, from };
    // These statements are not in a transaction, so they may run concurrently.
    const [found, used, restarts, replicas, deployments, page] = await Promise.all([
      queries.selectBuckets(ctx.tx, key),
      queries.selectReplicaBuckets(ctx.tx, key),
      queries.selectRestarts(ctx.tx, key),
      queries.selectReplicas(ctx.tx, key.org_id, key.project_id),
      queries.selectMarkers(ctx.tx, key),
      queries.selectPage(ctx.tx, key.org_id, key.project_id),
    ]);
    const secondsOf = (start: Date) => Math.min(bucketSeconds, (ctx.now.getTime() - start.getTime()) / 1000);
    const total = sumOf(starts.flatMap((start) => found.get(start.toISOString()) ?? []));
    return {
      range,
      from: from.toISOString(),
      to: ctx.now.toISOString(),
      bucket_seconds: bucketSeconds,
      total: presentBucket(total, (ctx.now.getTime() - from.getTime()) / 1000),
      buckets: starts.map((start) => ({
        at: start.toISOString(),
        ...presentBucket(found.get(start.toISOString()), secondsOf(start)),
      })),
      page: page === undefined ? null : presentPage(page),
      replicas: presentReplicas(starts, { replicas, used, restarts }),
      memory_limit_bytes: ctx.platform.settings.workloadLimits.memoryBytes,
      crashes: crashesOf(restarts),
      deployments,
    };
  },
};

type Page = NonNullable<Awaited<ReturnType<typeof queries.selectPage>>>;

function presentPage({ looked_at, http_status, failure, ...times }: Page) {
  const shown = (value: number | null) => (value === null ? null : rounded(value));
  return {
    at: looked_at as string,
    ok: failure === null,
    http_status,
    failure,
    dns_ms: shown(times.dns_ms),
    connect_ms: shown(times.connect_ms),
    tls_ms: shown(times.tls_ms),
    first_byte_ms: shown(times.first_byte_ms),
    total_ms: shown(times.total_ms),
  };
}

/** Adds up the crashes of all replicas in each bucket. */
function crashesOf(restarts: Awaited<ReturnType<typeof selectRestarts>>): Result<"metrics.get">["crashes"] {
  const byStart = Map.groupBy(restarts, ({ at }) => at);
  const all = [...byStart].map(([at, rows]) => ({
    at,
    count: rows.reduce((sum, row) => sum + row.restarts, 0),
    out_of_memory: rows.reduce((sum, row) => sum + row.out_of_memory, 0),
  }));
  return all.toSorted((a, b) => a.at.localeCompare(b.at));
}

interface Found {
  readonly replicas: Awaited<ReturnType<typeof selectReplicas>>;
  readonly used: readonly ReplicaBucket[];
  readonly restarts: Awaited<ReturnType<typeof selectRestarts>>;
}

/** Returns every replica that exists or existed in the range, with a bucket for each start time. */
function presentReplicas(starts: readonly Date[], found: Found): Result<"metrics.get">["replicas"] {
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
