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
  return [
    {
      title: "Requests",
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
      least: 0.1,
      format: (value) => value.toFixed(2),
      series: [{ label: "in use, all replicas", colour: "accent", fill: true, values: cpu }],
    },
    {
      title: "Memory",
      format: bytes,
      isBinary: true,
      series: [{ label: "all replicas", colour: "accent", fill: true, values: memory }],
    },
  ];
}

/** Returns what all charts of these numbers share: the times of their points, and when deployments went live. */
export function axisOf({ buckets, deployments }: Metrics): Pick<Drawn, "times" | "markers"> {
  return {
    times: buckets.map(({ at }) => Date.parse(at) / 1000),
    markers: deployments.map(({ at, number }) => ({ at: Date.parse(at) / 1000, number })),
  };
}

export function milliseconds(value: number | null): string {
  if (value === null) return "–";
  if (value === 0) return "0";
  return value >= 1000 ? `${(value / 1000).toFixed(1)} s` : `${value < 10 ? value.toFixed(1) : Math.round(value)} ms`;
}

type Bucket = Metrics["buckets"][number];

interface ChartOf extends Omit<Drawn, "times" | "markers" | "zoom" | "onZoom"> {
  readonly title: string;
}

function pageLoadOf({ buckets }: Metrics): ChartOf {
  return {
    title: "Load of the first page",
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
