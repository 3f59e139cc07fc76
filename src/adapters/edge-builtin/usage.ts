import { randomUUID } from "node:crypto";
import { latencyBucketsMs, type EdgeUsage } from "../../ports/edge.ts";

const classCount = 6;
const bucketCount = latencyBucketsMs.length + 1;

/** Counts the requests of one project. Bytes are those of bodies and tunnels; latency is the time until the response's head. */
export class ProjectUsage {
  readonly projectId: string;
  requests = 0;
  bytesIn = 0;
  bytesOut = 0;
  latencySumMs = 0;
  // Created with the first request: of 10,000 projects, most are idle.
  #classes: Float64Array | undefined;
  #buckets: Float64Array | undefined;

  constructor(projectId: string) {
    this.projectId = projectId;
  }

  get isUsed(): boolean {
    return this.requests + this.bytesIn + this.bytesOut > 0;
  }

  /** Counts one request that has been answered. */
  count(status: number, latencyMs: number): void {
    const classes = (this.#classes ??= new Float64Array(classCount));
    const buckets = (this.#buckets ??= new Float64Array(bucketCount));
    this.requests += 1;
    increase(classes, Math.min(5, Math.floor(status / 100)), 1);
    this.latencySumMs += latencyMs;
    let bucket = 0;
    while (bucket < latencyBucketsMs.length && latencyMs > (latencyBucketsMs[bucket] as number)) bucket += 1;
    increase(buckets, bucket, 1);
  }

  /** Returns the counts in the port's format, with cumulative buckets. */
  show(counter: string): EdgeUsage {
    let sum = 0;
    const byClass: Record<string, number> = {};
    for (let i = 1; i <= 5; i += 1) if (this.#classes?.[i]) byClass[i] = this.#classes[i] as number;
    return {
      counter,
      project_id: this.projectId,
      requests: this.requests,
      by_class: byClass,
      bytes_in: this.bytesIn,
      bytes_out: this.bytesOut,
      latency_buckets: Array.from(this.#buckets ?? new Float64Array(bucketCount), (count) => (sum += count)),
      latency_sum_ms: this.latencySumMs,
    };
  }
}

function increase(counts: Float64Array, at: number, by: number): void {
  counts[at] = (counts[at] ?? 0) + by;
}

// The control plane reads every few seconds; an hour covers an outage of the control plane.
const keepEndedMs = 3_600_000;

/** Counts of all projects since this edge process started, and the final counts of the processes that it replaced. */
export class UsageBook {
  readonly #counter = randomUUID();
  readonly #projects = new Map<string, ProjectUsage>();
  readonly #ended = new Map<string, { readonly usage: EdgeUsage; readonly untilMs: number }>();

  of(projectId: string): ProjectUsage {
    let usage = this.#projects.get(projectId);
    if (usage === undefined) this.#projects.set(projectId, (usage = new ProjectUsage(projectId)));
    return usage;
  }

  /** Returns own counts and those of ended processes, without projects that had no traffic. */
  show(): EdgeUsage[] {
    const used = [...this.#projects.values()].filter(({ isUsed }) => isUsed);
    const own = used.map((usage) => usage.show(this.#counter));
    const now = Date.now();
    for (const [key, { untilMs }] of this.#ended) if (untilMs < now) this.#ended.delete(key);
    return [...own, ...Array.from(this.#ended.values(), ({ usage }) => usage)];
  }

  /** Stores the final counts of a process that has stopped. */
  keep(counts: readonly EdgeUsage[]): void {
    const untilMs = Date.now() + keepEndedMs;
    for (const usage of counts) this.#ended.set(`${usage.counter} ${usage.project_id}`, { usage, untilMs });
  }
}
