import type { Handlers } from "../context.ts";
import * as queries from "./queries.ts";
import { presentReplicas } from "./present-replicas.ts";
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
