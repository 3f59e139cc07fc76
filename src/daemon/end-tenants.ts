import { removeEdge } from "../features/deployments/deployments.ts";
import { throwTogether } from "../kit/throw-together.ts";
import { endApplications } from "../reconcile/apps/apps-task.ts";
import { edgeId } from "../reconcile/edge/edge-task.ts";
import type { Platform } from "../reconcile/platform.ts";

/**
 * Stops the edge, all applications and all projects' databases. A part that can't be stopped (a read-only disk, a database that is gone)
 * must not leave the others running.
 */
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
