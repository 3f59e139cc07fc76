import { removeEdge } from "../features/routes/routes.ts";
import { settlesWithin } from "../kit/settles-within.ts";
import { throwTogether } from "../kit/throw-together.ts";
import { endApplications } from "../reconcile/apps/apps-task.ts";
import { edgeId } from "../reconcile/edge/edge-task.ts";
import type { Platform } from "../reconcile/platform.ts";

/** Stops what was started, in reverse order, once. */
export interface Shutdown {
  /** Registers how to stop something that now runs. Throws `EndedAtStart` if the end was requested: what follows must not be started. */
  onEnd(what: string, end: () => Promise<void>): void;
  /** Runs a start; `run` waits for it, because it stops at its next `onEnd`. Throws `EndedAtStart` if the end was requested meanwhile. */
  during<T>(start: () => Promise<T>): Promise<T>;
  /** Stops everything. A part that fails is logged and does not keep the others from stopping. Further calls wait for the first. */
  run(): Promise<void>;
}

/** The steps of a start take a few seconds each; one that hangs must not keep the rest from ending. */
const startMs = 30_000;

export function createShutdown(complain: (line: string) => void): Shutdown {
  const steps: { what: string; end: () => Promise<void> }[] = [];
  let starting: Promise<unknown> = Promise.resolve();
  let under: Promise<void> | undefined;
  async function endAll(): Promise<void> {
    await settlesWithin(starting, startMs);
    for (let step = steps.pop(); step !== undefined; step = steps.pop()) {
      const { what, end } = step;
      await end().catch((error: unknown) =>
        complain(`could not end ${what}: ${error instanceof Error ? error.message : String(error)}`),
      );
    }
  }
  return {
    onEnd(what, end) {
      steps.push({ what, end });
      if (under !== undefined) throw new EndedAtStart();
    },
    async during(start) {
      const started = start();
      starting = started.catch(() => {});
      const value = await started;
      if (under !== undefined) throw new EndedAtStart();
      return value;
    },
    run: () => (under ??= endAll()),
  };
}

/** The end was requested before the start was complete. */
export class EndedAtStart extends Error {
  override readonly name = "EndedAtStart";
}

/** Signals within this time belong to the same request: a terminal, npm and `timeout` signal both the process and its group. */
const sameRequestMs = 2000;

/** Distinguishes a second request to end from a signal that only repeats the first. */
export function createEndRequests(now: () => number = () => performance.now()) {
  let firstAt: number | undefined;
  return {
    add(): "first" | "repeated" | "second" {
      if (firstAt !== undefined) return now() - firstAt < sameRequestMs ? "repeated" : "second";
      firstAt = now();
      return "first";
    },
  };
}

/** Stops the edge, all applications and all projects' databases. One that can't be stopped must not leave the others running. */
export async function endTenants(platform: Platform): Promise<void> {
  const steps = [() => endEdge(platform), () => endEveryApplication(platform), () => endDatabases(platform)];
  const outcomes: PromiseSettledResult<void>[] = [];
  for (const end of steps) outcomes.push(...(await Promise.allSettled([end()])));
  throwTogether(outcomes);
}

/** Stops this machine's edge and removes its row, so that nothing waits for its confirmation. */
export async function endEdge(platform: Platform): Promise<void> {
  await platform.ports.edge.stop(1000);
  await removeEdge(platform.db, edgeId(platform.machine, platform.ports.edge));
}

async function endEveryApplication(platform: Platform): Promise<void> {
  try {
    await endApplications(platform);
  } catch (error) {
    // Rows and logs then lack the stop, but the processes end nevertheless.
    const { runtime } = platform.ports;
    const ids = new Set((await runtime.observe()).map(({ workload_id }) => workload_id));
    const stopped = await Promise.allSettled([...ids].map((id) => runtime.stop(id, platform.settings.stopGraceMs)));
    throwTogether([...stopped, { status: "rejected", reason: error }]);
  }
}

async function endDatabases({ ports: { postgresHost } }: Platform): Promise<void> {
  throwTogether(await Promise.allSettled((await postgresHost.list()).map((id) => postgresHost.stop(id))));
}
