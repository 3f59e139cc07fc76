import type { EdgeUsage } from "../../ports/edge.ts";

// The control plane reads every few seconds; an hour covers an outage of the control plane.
const keepEndedMs = 3_600_000;

interface Kept {
  /** Counts from before the worker last reset its own. */
  readonly before: EdgeUsage | undefined;
  readonly last: EdgeUsage;
  readonly untilMs: number;
}

/** Sums the counts of every worker, including stopped ones. A worker that is stopping drops the counts of projects with nothing open. */
export class UsageBook {
  readonly #kept = new Map<string, Kept>();

  note(usages: readonly EdgeUsage[]): void {
    const untilMs = Date.now() + keepEndedMs;
    for (const last of usages) {
      const key = `${last.counter} ${last.project_id}`;
      const known = this.#kept.get(key);
      const hasForgotten = known !== undefined && last.requests < known.last.requests;
      this.#kept.set(key, { before: hasForgotten ? total(known) : known?.before, last, untilMs });
    }
  }

  show(): EdgeUsage[] {
    const now = Date.now();
    for (const [key, { untilMs }] of this.#kept) if (untilMs < now) this.#kept.delete(key);
    return Array.from(this.#kept.values(), total);
  }
}

function total({ before, last }: Kept): EdgeUsage {
  if (before === undefined) return last;
  const by_class = { ...before.by_class };
  for (const [digit, count] of Object.entries(last.by_class)) by_class[digit] = (by_class[digit] ?? 0) + count;
  return {
    ...last,
    by_class,
    requests: before.requests + last.requests,
    bytes_in: before.bytes_in + last.bytes_in,
    bytes_out: before.bytes_out + last.bytes_out,
    latency_buckets: last.latency_buckets.map((count, i) => count + (before.latency_buckets[i] ?? 0)),
    latency_sum_ms: before.latency_sum_ms + last.latency_sum_ms,
  };
}
