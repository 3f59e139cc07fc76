import type { Answer } from "../contract/client.ts";

type Metrics = Answer<"metrics.get">;
type Bucket = Metrics["buckets"][number];
type Replica = Metrics["replicas"][number];

const rowsAtMost = 24;
const deploymentsAtMost = 5;

/** Summarizes metrics in a thousand tokens: the totals, and a table of the buckets with requests, merged until they are few. */
export function summarizeMetrics({ total, buckets, replicas, deployments, ...rest }: Metrics) {
  const { page_load, ...traffic } = total;
  const joined = Math.max(1, Math.ceil(buckets.length / rowsAtMost));
  const { bucket_seconds, ...head } = rest;
  return {
    ...head,
    total: { ...traffic, ...(page_load.looks === 0 ? {} : { page_load }) },
    traffic: {
      seconds_a_row: bucket_seconds * joined,
      columns: ["at", "requests", "errors", "p95_ms_most", "page_load_failures"],
      rows: chunks(buckets, joined)
        .map(rowOf)
        .filter((row) => row[1] !== 0 || row[4] !== 0),
    },
    replicas: replicas.map(summarizeReplica),
    went_live: deployments.slice(-deploymentsAtMost).map(({ number, at, trigger }) => ({ number, at, trigger })),
  };
}

function rowOf(buckets: readonly Bucket[]): readonly [string, number, number, number | null, number] {
  return [
    (buckets[0] as Bucket).at,
    sum(buckets.map(({ requests }) => requests)),
    sum(buckets.map(({ errors }) => errors)),
    most(buckets.map(({ latency_ms }) => latency_ms.p95)),
    sum(buckets.map(({ page_load }) => page_load.failed)),
  ];
}

function summarizeReplica({ buckets, ...replica }: Replica) {
  const cpus = buckets.map((bucket) => bucket.cpus).filter((each) => each !== null);
  return {
    ...replica,
    memory_bytes_most: most(buckets.map((bucket) => bucket.memory_bytes_most)),
    cpus_mean: cpus.length === 0 ? null : Number((sum(cpus) / cpus.length).toPrecision(3)),
    cpus_most: most(cpus),
  };
}

function chunks<T>(list: readonly T[], size: number): readonly (readonly T[])[] {
  return Array.from({ length: Math.ceil(list.length / size) }, (_, index) =>
    list.slice(index * size, (index + 1) * size),
  );
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((all, one) => all + one, 0);
}

function most(numbers: readonly (number | null)[]): number | null {
  const known = numbers.filter((each) => each !== null);
  return known.length === 0 ? null : Math.max(...known);
}
