import type { Answer } from "../../../contract/client.ts";
import { bytes, count } from "../../data/format.ts";
import type { Drawn } from "../../ui/plot.ts";

export type Metrics = Answer<"metrics.get">;

/** Returns the charts of a project, without those of which nothing was measured. */
export function chartsOf(data: Metrics): ChartOf[] {
  const { buckets } = data;
  // Before anything ran, show a gap instead of zeros.
  const begin = firstMeasured(data);
  const of = (read: (bucket: Bucket) => number | null) =>
    buckets.map((bucket) => (bucket.at < begin ? null : read(bucket)));
  const cpu = sumOf(data, (bucket) => bucket.cpus);
  const memory = sumOf(data, (bucket) => bucket.memory_bytes);
  const limit = sumOf(data, (bucket) => (bucket.memory_bytes === null ? null : data.memory_limit_bytes));
  return [
    {
      title: "Requests",
      about:
        "How many requests were answered, by the kind of answer. 5xx are failures of the application or of the way to it.",
      least: 4,
      format: count,
      series: [
        {
          label: "2xx, 3xx",
          colour: "accent",
          fill: true,
          values: of(({ answers }) => answers["2xx"] + answers["3xx"]),
        },
        { label: "4xx", colour: "warn", values: of(({ answers }) => answers["4xx"]) },
        { label: "5xx", colour: "bad", values: of(({ answers }) => answers["5xx"]) },
      ],
    },
    {
      title: "Latency",
      about:
        "How long answers took to begin: half of them took less than p50, 95 of 100 less than p95, 99 less than p99.",
      least: 10,
      format: milliseconds,
      series: [
        { label: "p50", colour: "accent", values: of(({ latency_ms: latency }) => latency.p50) },
        { label: "p95", colour: "warn", values: of(({ latency_ms: latency }) => latency.p95) },
        { label: "p99", colour: "faint", values: of(({ latency_ms: latency }) => latency.p99) },
      ],
    },
    ...(data.total.page_load.looks === 0 ? [] : [pageLoadOf(data)]),
    {
      title: "Processors",
      about: "How many processors all replicas together kept busy: 1.00 is one of them all the time.",
      least: 0.1,
      format: (value) => value.toFixed(2),
      series: [{ label: "in use, all replicas", colour: "accent", fill: true, values: cpu }],
    },
    {
      title: "Memory",
      about: `What all replicas together used. Each may use ${bytes(data.memory_limit_bytes)}; one that needs more is ended and started again.`,
      format: bytes,
      isBinary: true,
      series: [
        { label: "all replicas", colour: "accent", fill: true, values: memory },
        { label: "limit", colour: "bad", values: limit },
      ],
    },
  ];
}

/** Returns what all charts of these numbers share: the times of their points, when deployments went live, and when replicas crashed. */
export function axisOf({ buckets, deployments, crashes }: Metrics): Pick<Drawn, "times" | "markers" | "crashes"> {
  return {
    times: buckets.map(({ at }) => Date.parse(at) / 1000),
    markers: deployments.map(({ at, number }) => ({ at: Date.parse(at) / 1000, number })),
    crashes: crashes.map(({ at, count: all, out_of_memory: outOfMemory }) => ({
      ...{ at: Date.parse(at) / 1000, count: all, outOfMemory },
    })),
  };
}

export function milliseconds(value: number | null): string {
  if (value === null) return "–";
  if (value === 0) return "0";
  return value >= 1000 ? `${(value / 1000).toFixed(1)} s` : `${value < 10 ? value.toFixed(1) : Math.round(value)} ms`;
}

type Bucket = Metrics["buckets"][number];

interface ChartOf extends Omit<Drawn, "times" | "markers" | "crashes" | "zoom" | "onZoom"> {
  readonly title: string;
  readonly about: string;
}

function pageLoadOf({ buckets }: Metrics): ChartOf {
  return {
    title: "Load of the first page",
    about:
      "How long the platform's own visits of the first page took, until its first byte and until all of it was there.",
    least: 10,
    format: milliseconds,
    series: [
      { label: "first byte", colour: "accent", values: buckets.map(({ page_load: load }) => load.first_byte_ms) },
      { label: "complete", colour: "warn", values: buckets.map(({ page_load: load }) => load.total_ms) },
      { label: "slowest", colour: "faint", values: buckets.map(({ page_load: load }) => load.slowest_ms) },
    ],
  };
}

function firstMeasured({ buckets, replicas }: Metrics): string {
  const withRequests = buckets.find(({ requests }) => requests > 0)?.at ?? "9";
  const ofReplicas = replicas.flatMap(({ buckets: own }) => own.find(({ cpus }) => cpus !== null)?.at ?? []);
  return [withRequests, ...ofReplicas].toSorted()[0] ?? "";
}

/** Returns the sum over all replicas for each bucket; null if no replica was measured. */
function sumOf(
  { buckets, replicas }: Metrics,
  read: (bucket: Metrics["replicas"][number]["buckets"][number]) => number | null,
): (number | null)[] {
  const sums = new Map<string, number>();
  for (const replica of replicas)
    for (const bucket of replica.buckets) {
      const value = read(bucket);
      if (value !== null) sums.set(bucket.at, (sums.get(bucket.at) ?? 0) + value);
    }
  return buckets.map(({ at }) => sums.get(at) ?? null);
}
