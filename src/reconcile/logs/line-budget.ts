/** How many lines a log takes of one replica: bursts at once, then so many a second. */
export interface LineRate {
  readonly burst: number;
  readonly perSecond: number;
}

/** What the log takes of one replica at this moment. */
export interface LineBudget {
  availableLines(): number;
  spend(lines: number): void;
}

interface Bucket {
  lines: number;
  atMs: number;
}

const mostReplicas = 10_000;

/** Returns the budget of a replica. It outlives deployments: an application that floods its log does not get more by crashing. */
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
    // A bucket that is forgotten is full again. Each use moves its own to the end, so that the one unused for longest goes first.
    buckets.delete(replica);
    buckets.set(replica, bucket);
    if (buckets.size > mostReplicas) buckets.delete(buckets.keys().next().value as string);
    return {
      availableLines: () => Math.max(0, Math.floor(refill(bucket).lines)),
      spend: (lines) => void (refill(bucket).lines -= lines),
    };
  };
}
