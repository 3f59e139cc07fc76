import { setTimeout as sleep } from "node:timers/promises";
import { isCalled } from "../../features/cron/cron.ts";
import {
  awaitEdges,
  changedWorkloads,
  hasOpenRequests,
  markDraining,
  markStopped,
  parseWorkloadId,
  type WorkloadRow,
} from "../../features/deployments/deployments.ts";
import type { Platform } from "../platform.ts";
import { desiredReplicas, isForGood } from "./apps-rules.ts";
import { outputOf } from "./output-of.ts";

/** Replicas that are to end: those of a deployment from an ordinal on. */
export interface Ending {
  readonly id: string;
  /** Undefined when the deployment is unknown here: then there are no rows. */
  readonly row: WorkloadRow | undefined;
  readonly ordinals: readonly number[];
}

const confirmMs = 10_000;
const idlePollMs = 100;

/**
 * Takes replicas out of the routes, lets what they serve end, and frees them: each step only after every live edge confirmed the first.
 * Stops half way when the replicas are wanted again, or an edge does not confirm; the next run decides anew.
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

/** Resolves when neither an edge nor a cron run has anything open to these targets, or the drain time is over. */
async function waitUntilIdle(platform: Platform, row: WorkloadRow, targets: readonly string[]): Promise<void> {
  const since = row.ending_since === null ? Date.now() : Date.parse(row.ending_since);
  while (Date.now() < since + platform.settings.drainMs) {
    const isBusy = (await hasOpenRequests(platform.db, targets)) || (await isCalled(platform.db, [row.deployment_id]));
    if (!isBusy) return;
    await sleep(idlePollMs);
  }
}

/** A scale or an undelete may have come meanwhile. */
async function isWantedAgain(platform: Platform, { id, ordinals }: Ending): Promise<boolean> {
  const { workloads } = await changedWorkloads(platform.db, platform.machine, { ids: [id] });
  const desired = desiredReplicas(workloads.find((row) => row.id === id)) ?? 0;
  return ordinals.some((ordinal) => ordinal < desired);
}

/** Ends the processes, stores their last output, forgets them. */
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
