import { once } from "node:events";
import { setPriority } from "node:os";
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads";
import { visitNeighbour, type EdgeAddress, type Visits } from "../../src/ports/edge-attack.suite.ts";

interface VisitPlan {
  readonly edge: EdgeAddress;
  readonly host: string;
  readonly forMs: number;
}

/**
 * Like `visitNeighbour`, in its own thread at a high priority (only for root; for an ordinary user the priority does not change). Delays of
 * the bench itself, such as the start of a `git push`, must not count as the edge's latency.
 */
export async function visitFromOwnThread(plan: VisitPlan): Promise<Visits> {
  const visitor = new Worker(new URL(import.meta.url), { workerData: plan });
  try {
    const [visits] = (await once(visitor, "message")) as [Visits];
    return visits;
  } finally {
    await visitor.terminate();
  }
}

export function p99({ latenciesMs }: Visits): number {
  return latenciesMs[Math.floor(latenciesMs.length * 0.99)] ?? Number.NaN;
}

if (!isMainThread) {
  // Changes only the calling thread's priority (setpriority(2), Linux).
  if (process.geteuid?.() === 0) setPriority(-19);
  const { edge, host, forMs } = workerData as VisitPlan;
  parentPort?.postMessage(await visitNeighbour(edge, host, forMs));
}
