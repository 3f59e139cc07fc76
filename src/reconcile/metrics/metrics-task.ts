import { evaluateTraffic } from "../../features/health/health.ts";
import { addReplicaSamples, addTraffic, pruneMetrics, type ReplicaSample } from "../../features/metrics/metrics.ts";
import { parseWorkloadId } from "../../features/replicas/replicas.ts";
import type { EdgeUsage } from "../../ports/edge.ts";
import type { Task, Platform } from "../platform.ts";

const everyMs = 15_000;
const pruneEveryMs = 10 * 60_000;
// Unchanged counters are stored this often too, so that they are not mistaken for those of an edge long gone.
const retellEveryMs = 3_600_000;
// Without control groups, a measurement reads all of /proc. Workloads not reached in this time come first in the next run.
const usageBudgetMs = 3000;

/** Adds applications' traffic, CPU time and memory to buckets, and deletes old ones. */
export function metricsTask(platform: Platform): Task {
  const seen = createSeenCounters();
  const rotation = createRotation();
  let prunedAtMs = -Infinity;
  let sampledAt: Date | undefined;
  return {
    name: "metrics",
    periodMs: everyMs,
    // A deployment that goes live begins a sample of its own.
    topics: ["metrics"],
    async run(signal) {
      const now = platform.clock.now();
      const from = sampledAt ?? new Date(now.getTime() - everyMs);
      // The traffic happened between the last run and this one, so assign it to the middle.
      const at = new Date((from.getTime() + now.getTime()) / 2);
      const changed = seen.changed(await platform.ports.edge.measure());
      await addTraffic(platform.db, changed, at, from);
      seen.stored(changed);
      sampledAt = now;
      await evaluateTraffic(platform.db, now);
      const samples = await measureReplicas(platform, rotation, signal);
      await addReplicaSamples(platform.db, samples, now);
      if (performance.now() - prunedAtMs > pruneEveryMs) {
        prunedAtMs = performance.now();
        await pruneMetrics(platform.db, platform.settings.metrics.retention);
      }
      const sinceBoundaryMs = platform.clock.now().getTime() % everyMs;
      return {
        detail: `${changed.length} counters changed, ${samples.length} replicas`,
        againMs: everyMs - sinceBoundaryMs,
      };
    },
  };
}

/** Remembers which counter values are stored, so that unchanged counters cost no write. */
function createSeenCounters() {
  let known = new Map<string, number>();
  let toldAtMs = performance.now();
  const keyOf = (usage: EdgeUsage) => `${usage.counter} ${usage.project_id}`;
  const signOf = (usage: EdgeUsage) => usage.requests + usage.bytes_in + usage.bytes_out;
  return {
    changed(usages: readonly EdgeUsage[]): readonly EdgeUsage[] {
      if (performance.now() - toldAtMs > retellEveryMs) {
        known = new Map();
        toldAtMs = performance.now();
      }
      return usages.filter((usage) => known.get(keyOf(usage)) !== signOf(usage));
    },
    stored(usages: readonly EdgeUsage[]): void {
      for (const usage of usages) known.set(keyOf(usage), signOf(usage));
    },
  };
}

/** Rotates the order, so that items left out last time come first. */
function createRotation() {
  let next = 0;
  return {
    order<T>(items: readonly T[]): readonly T[] {
      const start = items.length === 0 ? 0 : next % items.length;
      return [...items.slice(start), ...items.slice(0, start)];
    },
    advance(count: number): void {
      next += count;
    },
  };
}

async function runningWorkloads({ ports }: Platform): Promise<readonly string[]> {
  const running = (await ports.runtime.observe()).filter(({ state }) => state === "running");
  return [...new Set(running.map(({ workload_id }) => workload_id))];
}

async function measureReplicas(
  platform: Platform,
  rotation: ReturnType<typeof createRotation>,
  signal: AbortSignal,
): Promise<readonly ReplicaSample[]> {
  const samples: ReplicaSample[] = [];
  const begunAtMs = performance.now();
  let reached = 0;
  for (const id of rotation.order(await runningWorkloads(platform))) {
    if (signal.aborted || performance.now() - begunAtMs > usageBudgetMs) break;
    reached += 1;
    for (const { workload_id, ...usage } of await platform.ports.runtime.measure(id))
      samples.push({ ...usage, ...parseWorkloadId(workload_id), memory_bytes: Math.round(usage.memory_bytes) });
  }
  rotation.advance(reached);
  return samples;
}
