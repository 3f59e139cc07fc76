import { latencyBucketsMs, type EdgeUsage } from "../../ports/edge.ts";

/** How a range is divided into buckets: all full buckets that fit, plus the current one. */
export const ranges = {
  "1h": { bucketSeconds: 60, buckets: 61 },
  "24h": { bucketSeconds: 900, buckets: 97 },
  "7d": { bucketSeconds: 3600, buckets: 169 },
} as const;

export type Range = keyof typeof ranges;

/** Returns the start times of a range's buckets, oldest first. */
export function bucketStarts(range: Range, now: Date): readonly Date[] {
  const { bucketSeconds, buckets } = ranges[range];
  const widthMs = bucketSeconds * 1000;
  const last = Math.floor(now.getTime() / widthMs) * widthMs;
  return Array.from({ length: buckets }, (_, index) => new Date(last - (buckets - 1 - index) * widthMs));
}

/** Converts an edge's counts to the stored form: latency buckets are not cumulative. */
export function countsOf(usage: EdgeUsage) {
  const { latency_buckets: cumulative, by_class, ...rest } = usage;
  return {
    ...rest,
    bytes_in: Math.round(usage.bytes_in),
    bytes_out: Math.round(usage.bytes_out),
    classes: ["1", "2", "3", "4", "5"].map((digit) => by_class[digit] ?? 0),
    latencies: cumulative.map((count, index) => count - (cumulative[index - 1] ?? 0)),
  };
}

/** Returns the latency in ms below which this share of requests stayed, assuming an even spread within buckets; null without requests. */
export function quantile(latencies: readonly number[], share: number): number | null {
  const all = latencies.reduce((sum, count) => sum + count, 0);
  if (all === 0) return null;
  const wanted = all * share;
  let below = 0;
  for (const [index, count] of latencies.entries()) {
    if (count > 0 && below + count >= wanted) return rounded(within(index, (wanted - below) / count));
    below += count;
  }
  return latencyBucketsMs.at(-1) ?? null;
}

function within(index: number, share: number): number {
  const upper = latencyBucketsMs[index];
  const lower = latencyBucketsMs[index - 1] ?? 0;
  return upper === undefined ? lower : lower + (upper - lower) * share;
}

function addCounts(a: readonly number[], b: readonly number[]): number[] {
  return Array.from({ length: Math.max(a.length, b.length) }, (_, index) => (a[index] ?? 0) + (b[index] ?? 0));
}

/** Rounds to three decimals; our clocks are no more precise. */
export function rounded(value: number): number {
  return Math.round(value * 1000) / 1000;
}

export interface Traffic {
  readonly requests: number;
  readonly errors: number;
  readonly classes: readonly number[];
  readonly bytes_in: number;
  readonly bytes_out: number;
  readonly latencies: readonly number[];
  readonly latency_sum_ms: number;
}

/** Results of first-page probes in a period; times are sums. */
export interface Looks {
  readonly looks: number;
  readonly failed_looks: number;
  readonly dns_looks: number;
  readonly dns_ms: number;
  readonly connect_ms: number;
  readonly tls_looks: number;
  readonly tls_ms: number;
  readonly first_byte_ms: number;
  readonly total_ms: number;
  readonly slowest_ms: number;
}

export type Bucket = Traffic & Looks;

const nothing: Bucket = {
  requests: 0,
  errors: 0,
  classes: [],
  bytes_in: 0,
  bytes_out: 0,
  latencies: [],
  latency_sum_ms: 0,
  looks: 0,
  failed_looks: 0,
  dns_looks: 0,
  dns_ms: 0,
  connect_ms: 0,
  tls_looks: 0,
  tls_ms: 0,
  first_byte_ms: 0,
  total_ms: 0,
  slowest_ms: 0,
};

export function sumOf(buckets: readonly Bucket[]): Bucket {
  return buckets.reduce<Bucket>((sum, each) => {
    const added = (key: Exclude<keyof Bucket, "classes" | "latencies">) => sum[key] + each[key];
    return {
      requests: added("requests"),
      errors: added("errors"),
      classes: addCounts(sum.classes, each.classes),
      bytes_in: added("bytes_in"),
      bytes_out: added("bytes_out"),
      latencies: addCounts(sum.latencies, each.latencies),
      latency_sum_ms: added("latency_sum_ms"),
      looks: added("looks"),
      failed_looks: added("failed_looks"),
      dns_looks: added("dns_looks"),
      dns_ms: added("dns_ms"),
      connect_ms: added("connect_ms"),
      tls_looks: added("tls_looks"),
      tls_ms: added("tls_ms"),
      first_byte_ms: added("first_byte_ms"),
      total_ms: added("total_ms"),
      slowest_ms: Math.max(sum.slowest_ms, each.slowest_ms),
    };
  }, nothing);
}

/** Converts a bucket to the API's form; `seconds` is the time it covers. */
export function presentBucket(bucket: Bucket | undefined, seconds: number) {
  const { requests, errors, classes, latencies, latency_sum_ms, bytes_in, bytes_out, ...looks } = bucket ?? nothing;
  const answers = Object.fromEntries([1, 2, 3, 4, 5].map((digit) => [`${digit}xx`, classes[digit - 1] ?? 0]));
  return {
    requests,
    requests_per_second: seconds > 0 ? rounded(requests / seconds) : 0,
    answers: answers as Record<"1xx" | "2xx" | "3xx" | "4xx" | "5xx", number>,
    errors,
    error_rate: requests === 0 ? 0 : rounded(errors / requests),
    latency_ms: {
      mean: requests === 0 ? null : rounded(latency_sum_ms / requests),
      p50: quantile(latencies, 0.5),
      p95: quantile(latencies, 0.95),
      p99: quantile(latencies, 0.99),
    },
    bytes_in,
    bytes_out,
    page_load: presentLooks(looks),
  };
}

function presentLooks(looks: Looks) {
  const answered = looks.looks - looks.failed_looks;
  const mean = (sum: number, count = answered) => (count > 0 ? rounded(sum / count) : null);
  return {
    looks: looks.looks,
    failed: looks.failed_looks,
    dns_ms: mean(looks.dns_ms, looks.dns_looks),
    connect_ms: mean(looks.connect_ms),
    tls_ms: mean(looks.tls_ms, looks.tls_looks),
    first_byte_ms: mean(looks.first_byte_ms),
    total_ms: mean(looks.total_ms),
    slowest_ms: answered > 0 ? rounded(looks.slowest_ms) : null,
  };
}
