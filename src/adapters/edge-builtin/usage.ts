import { latencyBucketsMs, type EdgeUsage } from "../../ports/edge.ts";

/** Counts of one project. Bytes are those of bodies and tunnels; latency is the time to the response's head. */
export class ProjectUsage {
  readonly projectId: string;
  requests = 0;
  bytesIn = 0;
  bytesOut = 0;
  latencySumMs = 0;
  readonly #classes = new Float64Array(6);
  readonly #buckets = new Float64Array(latencyBucketsMs.length + 1);

  constructor(projectId: string) {
    this.projectId = projectId;
  }

  /** Counts one answered request. */
  count(status: number, latencyMs: number): void {
    this.requests += 1;
    increase(this.#classes, Math.min(5, Math.floor(status / 100)), 1);
    this.latencySumMs += latencyMs;
    let bucket = 0;
    while (bucket < latencyBucketsMs.length && latencyMs > (latencyBucketsMs[bucket] as number)) bucket += 1;
    increase(this.#buckets, bucket, 1);
  }

  /** The counts as the port shows them: buckets are cumulative. */
  show(): EdgeUsage {
    let sum = 0;
    const byClass: Record<string, number> = {};
    for (let i = 1; i <= 5; i += 1) if (this.#classes[i]) byClass[i] = this.#classes[i] as number;
    return {
      project_id: this.projectId,
      requests: this.requests,
      by_class: byClass,
      bytes_in: this.bytesIn,
      bytes_out: this.bytesOut,
      latency_buckets: Array.from(this.#buckets, (count) => (sum += count)),
      latency_sum_ms: this.latencySumMs,
    };
  }

  clear(): void {
    this.requests = 0;
    this.bytesIn = 0;
    this.bytesOut = 0;
    this.latencySumMs = 0;
    this.#classes.fill(0);
    this.#buckets.fill(0);
  }

  /** Adds what another edge process counted. */
  add(other: EdgeUsage): void {
    this.requests += other.requests;
    this.bytesIn += other.bytes_in;
    this.bytesOut += other.bytes_out;
    this.latencySumMs += other.latency_sum_ms;
    for (const [digit, count] of Object.entries(other.by_class)) increase(this.#classes, Number(digit), count);
    other.latency_buckets.forEach((count, i) =>
      increase(this.#buckets, i, count - (other.latency_buckets[i - 1] ?? 0)),
    );
  }
}

function increase(counts: Float64Array, at: number, by: number): void {
  counts[at] = (counts[at] ?? 0) + by;
}

/** Counts of all projects since the edge started. */
export class UsageBook {
  #projects = new Map<string, ProjectUsage>();

  of(projectId: string): ProjectUsage {
    let usage = this.#projects.get(projectId);
    if (usage === undefined) this.#projects.set(projectId, (usage = new ProjectUsage(projectId)));
    return usage;
  }

  show(): EdgeUsage[] {
    return Array.from(this.#projects.values(), (usage) => usage.show());
  }

  /** The counts so far, which start again from zero here: for handing them to a successor. */
  take(): EdgeUsage[] {
    const counts = this.show().filter((each) => each.requests + each.bytes_in + each.bytes_out > 0);
    for (const usage of this.#projects.values()) usage.clear();
    return counts;
  }

  add(counts: readonly EdgeUsage[]): void {
    for (const each of counts) this.of(each.project_id).add(each);
  }
}
