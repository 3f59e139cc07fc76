import { latencyBucketsMs, type EdgeUsage } from "../../ports/edge.ts";

const buckets = latencyBucketsMs.length + 1;
const classes = 5;

/** Parses the answer to `show table` into the counts of one worker. */
export function readUsage(counter: string, table: string): EdgeUsage[] {
  const usages: EdgeUsage[] = [];
  for (const line of table.split("\n")) {
    const project_id = / key=(\S+) /.exec(line)?.[1];
    if (project_id === undefined) continue;
    const values = new Map(line.split(" ").map((word) => word.split("=", 2) as [string, string]));
    usages.push(usageOf(counter, project_id, (name) => Number(values.get(name) ?? 0)));
  }
  return usages;
}

/** The number of a project's counters in the stick table: one per latency bucket, then one per status class. */
export const countersOfProject = buckets + classes;

/**
 * Returns the frontend rules that count a response. They cost less than a log line per request, and HAProxy keeps the counts while the
 * control plane is down. The last rule that applies ends the list.
 */
export function countingRules(): string[] {
  const count = (index: number) => `sc_inc_gpc(${index},0)`;
  const ofClass = [2, 3, 4, 5, 1].map(
    (digit) =>
      `http-after-response set-var(txn.counted) ${count(buckets + digit - 1)} if { status ${digit}00:${digit}99 }`,
  );
  const ofBucket = latencyBucketsMs.map(
    (bound, i) => `http-after-response allow if { var(txn.took) -m int le ${bound * 1000} } { ${count(i)} -m found }`,
  );
  return [
    "http-after-response allow if !{ sc_tracked(0) }",
    "http-after-response set-var(txn.took) date(0,us),sub(txn.begun)",
    ...ofClass,
    ...ofBucket,
    `http-after-response allow if { ${count(buckets - 1)} -m found }`,
  ];
}

function usageOf(counter: string, project_id: string, value: (name: string) => number): EdgeUsage {
  const counts = latencyBucketsMs.map((_, i) => value(`gpc${i}`)).concat(value(`gpc${buckets - 1}`));
  let sum = 0;
  const by_class: Record<string, number> = {};
  for (let i = 0; i < classes; i += 1) {
    const count = value(`gpc${buckets + i}`);
    if (count > 0) by_class[i + 1] = count;
  }
  return {
    ...{ counter, project_id, requests: value("http_req_cnt"), by_class },
    bytes_in: value("bytes_in_cnt"),
    bytes_out: value("bytes_out_cnt"),
    latency_buckets: counts.map((count) => (sum += count)),
    latency_sum_ms: counts.reduce((total, count, i) => total + count * middleMs(i), 0),
  };
}

/** Returns the middle of a latency bucket, which stands for each of its requests: HAProxy can't sum up times. */
function middleMs(bucket: number): number {
  const from = latencyBucketsMs[bucket - 1] ?? 0;
  return (from + (latencyBucketsMs[bucket] ?? 2 * from)) / 2;
}
