/** Rate limit for one replica's log lines: a burst, then a rate per second. */
export interface LineRate {
  readonly burst: number;
  readonly perSecond: number;
}

/** How many more lines the log accepts from one replica now. */
export interface LineBudget {
  availableLines(): number;
  spend(lines: number): void;
}

interface Bucket {
  lines: number;
  atMs: number;
}

const mostReplicas = 10_000;

/**
 * Returns a function that looks up a replica's budget. Budgets outlive deployments, so that an application can't get more lines by
 * crashing.
 */
export function createLineBudgets({ burst, perSecond }: LineRate): (replica: string) => LineBudget {
  const buckets = new Map<string, Bucket>();
  const refill = (bucket: Bucket): Bucket => {
    const nowMs = performance.now();
    bucket.lines = Math.min(burst, bucket.lines + ((nowMs - bucket.atMs) / 1000) * perSecond);
    bucket.atMs = nowMs;
    return bucket;
  };
  return (replica) => {
    const bucket = buckets.get(replica) ?? { lines: burst, atMs: performance.now() };
    // A forgotten bucket is full again. Each use moves a bucket to the end, so that the least recently used one is dropped first.
    buckets.delete(replica);
    buckets.set(replica, bucket);
    if (buckets.size > mostReplicas) buckets.delete(buckets.keys().next().value as string);
    return {
      availableLines: () => Math.max(0, Math.floor(refill(bucket).lines)),
      spend: (lines) => void (refill(bucket).lines -= lines),
    };
  };
}
