import { latencyBucketsMs, type EdgeUsage } from "../../ports/edge.ts";

const buckets = latencyBucketsMs.length + 1;
// Responses with 200 to 299, then all others, have a counter for each latency bucket; the other classes have one more each.
const otherClasses = [3, 4, 5, 1] as const;

/** Parses the answer to `show table` into the counts of one worker. */
export function readUsage(counter: string, table: string): EdgeUsage[] {
  const usages: EdgeUsage[] = [];
  for (const line of table.split("\n")) {
    const project_id = / key=(\S+) /.exec(line)?.[1];
    if (project_id === undefined) continue;
    const values = new Map(line.split(" ").map((word) => word.split("=", 2) as [string, string]));
    // A worker that an earlier version configured has other counters.
    if (!values.has(`gpc${countersOfProject - 1}`) || values.has(`gpc${countersOfProject}`)) continue;
    usages.push(usageOf(counter, project_id, (name) => Number(values.get(name) ?? 0)));
  }
  return usages;
}

/** The number of a project's counters in the stick table. */
export const countersOfProject = 2 * buckets + otherClasses.length;

/**
 * Returns the frontend rules that count a response. They cost less than a log line per request, and HAProxy keeps the counts while the
 * control plane is down. The last rule that applies ends the list, which for nearly all responses is one of the first.
 */
export function countingRules(): string[] {
  const count = (index: number) => `sc_inc_gpc(${index},0)`;
  const inBuckets = (first: number, which: string) => [
    ...latencyBucketsMs.map(
      (bound, i) => `${which}{ var(txn.took) -m int le ${bound * 1000} } { ${count(first + i)} -m found }`,
    ),
    `${which}{ ${count(first + buckets - 1)} -m found }`,
  ];
  const ofClass = otherClasses.map(
    (digit, i) =>
      `http-after-response set-var(txn.counted) ${count(2 * buckets + i)} if { status ${digit}00:${digit}99 }`,
  );
  return [
    "http-after-response allow if !{ sc_tracked(0) }",
    "http-after-response set-var(txn.took) date(0,us),sub(txn.begun)",
    ...inBuckets(0, "{ status 200:299 } ").map((condition) => `http-after-response allow if ${condition}`),
    ...ofClass,
    ...inBuckets(buckets, "").map((condition) => `http-after-response allow if ${condition}`),
  ];
}

function usageOf(counter: string, project_id: string, value: (name: string) => number): EdgeUsage {
  const countsFrom = (first: number) => Array.from({ length: buckets }, (_, i) => value(`gpc${first + i}`));
  const [good, others] = [countsFrom(0), countsFrom(buckets)];
  const counts = good.map((count, i) => count + (others[i] as number));
  let sum = 0;
  const classes = [
    [2, good.reduce((total, count) => total + count, 0)] as const,
    ...otherClasses.map((digit, i) => [digit, value(`gpc${2 * buckets + i}`)] as const),
  ];
  return {
    ...{ counter, project_id, requests: value("http_req_cnt") },
    by_class: Object.fromEntries(classes.filter(([, count]) => count > 0)),
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
