import { setTimeout as sleep } from "node:timers/promises";
import { isCalled } from "../../features/cron/cron.ts";
import {
  changedWorkloads,
  markDraining,
  markStopped,
  parseWorkloadId,
  type WorkloadRow,
} from "../../features/replicas/replicas.ts";
import { awaitEdges, hasOpenRequests } from "../../features/routes/routes.ts";
import type { Platform } from "../platform.ts";
import { desiredReplicas, isForGood } from "./apps-rules.ts";
import { outputOf } from "./output-of.ts";

/** The replicas of one deployment to stop, by ordinal. */
export interface Ending {
  readonly id: string;
  /** Undefined if the database does not know the deployment; it has no rows then. */
  readonly row: WorkloadRow | undefined;
  readonly ordinals: readonly number[];
}

const confirmMs = 10_000;
const idlePollMs = 100;

/**
 * Removes replicas from the routes, waits until every live edge has confirmed that and open requests have finished, then stops them.
 * Returns early if the replicas are wanted again or an edge does not confirm; the next run decides again.
 */
export async function endReplicas(platform: Platform, ending: Ending): Promise<void> {
  const { row, ordinals } = ending;
  const mayServe = (row?.replica_rows ?? []).filter(
    (replica) => ordinals.includes(replica.ordinal) && replica.host !== null,
  );
  if (row !== undefined && mayServe.length > 0) {
    await markDraining(platform.db, row, ordinals);
    if ((await awaitEdges(platform, { timeoutMs: confirmMs })) === "behind") return;
    await waitUntilIdle(
      platform,
      row,
      mayServe.map(({ host, port }) => `${host}:${port}`),
    );
    if (await isWantedAgain(platform, ending)) return;
  }
  await stopReplicas(platform, ending);
}

/** Resolves once neither an edge nor a cron run has an open request to these targets, or once the drain time is over. */
async function waitUntilIdle(platform: Platform, row: WorkloadRow, targets: readonly string[]): Promise<void> {
  const since = row.ending_since === null ? Date.now() : Date.parse(row.ending_since);
  while (Date.now() < since + platform.settings.drainMs) {
    const isBusy = (await hasOpenRequests(platform.db, targets)) || (await isCalled(platform.db, [row.deployment_id]));
    if (!isBusy) return;
    await sleep(idlePollMs);
  }
}

/** Checks again: the project may have been scaled or undeleted in the meantime. */
async function isWantedAgain(platform: Platform, { id, ordinals }: Ending): Promise<boolean> {
  const { workloads } = await changedWorkloads(platform.db, platform.machine, { ids: [id] });
  const desired = desiredReplicas(workloads.find((row) => row.id === id)) ?? 0;
  return ordinals.some((ordinal) => ordinal < desired);
}

/** Stops the processes, stores their last output, and forgets them. */
export async function stopReplicas(platform: Platform, { id, row, ordinals }: Ending): Promise<void> {
  const { runtime, logStore } = platform.ports;
  await runtime.stop(id, platform.settings.stopGraceMs, ordinals);
  if (row !== undefined) await platform.ingestOutput(await outputOf(platform, row));
  await runtime.remove(id, ordinals);
  await markStopped(platform.db, row ?? parseWorkloadId(id), { ordinals, forGood: isForGood(row) });
  const isWhole = (row?.replica_rows ?? []).every(
    ({ ordinal, state }) => ordinals.includes(ordinal) || state === "stopped",
  );
  if (isWhole) await logStore.forgetPositions(id);
}
