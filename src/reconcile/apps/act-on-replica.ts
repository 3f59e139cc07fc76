import { setTimeout as sleep } from "node:timers/promises";
import { recordCrash } from "../../features/activity/activity.ts";
import { workloadSource } from "../../features/deployments/deployments.ts";
import * as replicas from "../../features/replicas/replicas.ts";
import { awaitEdges } from "../../features/routes/routes.ts";
import type { Instance } from "../../ports/runtime.ts";
import type { Platform } from "../platform.ts";
import { probeInstance } from "../probe-health.ts";
import { recordInstance, startReplica } from "../start-replica.ts";
import { workloadOf } from "../workload.ts";
import { crashOf, isFaultless, type ReplicaAction } from "./apps-rules.ts";
import { outputOf } from "./output-of.ts";

export interface Replica {
  readonly platform: Platform;
  readonly workload: replicas.WorkloadRow;
  readonly ordinal: number;
  /** Undefined before the first start. */
  readonly row: replicas.ReplicaRow | undefined;
  readonly instance: Instance | undefined;
}

/** Performs the replica's next action. A start waits until the replica is healthy, for some seconds at most. */
export async function actOnReplica(replica: Replica, { action }: ReplicaAction, signal: AbortSignal): Promise<void> {
  switch (action) {
    case "start":
      return start(replica, signal);
    case "adopt":
      return recordInstance(replica.platform, keyOf(replica), replica.instance as Instance);
    case "crashed":
      return recordEnd(replica);
    case "probe":
      return admit(replica, replica.instance as Instance, signal);
    case "keep":
      return replicas.markKept(replica.platform.db, replica.workload, replica.ordinal);
    case "none":
  }
}

const confirmMs = 10_000;
const healthyWithinMs = 5000;
const probeTimeoutMs = 1000;
const firstPauseMs = 20;
const longestPauseMs = 500;

async function start(replica: Replica, signal: AbortSignal): Promise<void> {
  const { platform, workload, instance } = replica;
  // Starting frees the previous attempt's network, so every edge must first confirm that it no longer routes there. On a lost machine it
  // frees nothing.
  const frees = instance !== undefined && !instance.exit?.machine_lost;
  if (frees && (await awaitEdges(platform, { timeoutMs: confirmMs })) === "behind") return;
  const source = await workloadSource(platform.db, workload.org_id, workload.deployment_id);
  const seen = instance?.attempt ?? 0;
  const { process } = workload;
  const started = await startReplica(platform, await workloadOf(platform, source, process), {
    ...keyOf(replica),
    seen,
  });
  // A replica without requests is checked by a later run, so that others can start meanwhile.
  if (process === replicas.web) await admitWhenHealthy(replica, started, signal);
}

/** Marks a running replica as ready once its health check passes or, if it serves no requests, once it has stayed up long enough. */
async function admit(replica: Replica, instance: Instance, signal: AbortSignal): Promise<void> {
  if (replica.workload.process === replicas.web) return admitWhenHealthy(replica, instance, signal);
  const { platform } = replica;
  const upMs = Date.now() - instance.started_at.getTime();
  await sleep(Math.max(0, platform.settings.steadyMs - upMs), undefined, { signal }).catch(() => {});
  if (signal.aborted) return;
  await replicas.markReady(platform.db, { ...keyOf(replica), attempt: instance.attempt });
  await platform.wakeups.send(platform.db, "outcomes", replica.workload.id);
}

/** Marks a running replica as ready, so that it gets traffic, as soon as its health check passes. */
async function admitWhenHealthy(replica: Replica, { address, attempt }: Instance, signal: AbortSignal): Promise<void> {
  const { platform, workload, ordinal } = replica;
  if (address === null) return;
  const { hostname, health_path: path } = workload;
  const probe = { address, hostname, path, timeoutMs: probeTimeoutMs };
  const endMs = performance.now() + healthyWithinMs;
  for (let pauseMs = firstPauseMs; performance.now() < endMs; pauseMs = Math.min(pauseMs * 1.5, longestPauseMs)) {
    if (signal.aborted) return;
    const key = { workload_id: workload.id, ordinal, attempt };
    if ((await probeInstance(platform.ports.runtime, key, probe)).outcome === "healthy") {
      await replicas.markReady(platform.db, { ...keyOf(replica), attempt });
      return platform.wakeups.send(platform.db, "edge");
    }
    await sleep(pauseMs, undefined, { signal }).catch(() => {});
  }
}

/** Removes an ended replica from the routes, stores its last output, and records the crash if the application ended by itself. */
async function recordEnd(replica: Replica): Promise<void> {
  const { platform, workload, row, instance } = replica;
  const attempt = row?.attempt ?? 0;
  const crash = crashOf({ restarts: row?.restarts ?? 0 }, instance);
  const counts = !isFaultless(instance?.exit);
  const isNew = await replicas.markCrashed(platform.db, { ...keyOf(replica), ...crash, counts, attempt });
  await platform.wakeups.send(platform.db, "edge");
  await platform.ingestOutput(await outputOf(platform, workload, instance === undefined ? [] : [instance]));
  // If the deployment is still being released, its release fails and reports the exit.
  if (!isNew || workload.status !== "active") return;
  const { exit_code, out_of_memory, restarts } = crash;
  const { slug: project, number: deployment, process } = workload;
  const named = { project, deployment, process, replica: replica.ordinal };
  if (instance?.exit?.machine_lost) return platform.log.warn(named, "a replica was lost because its machine is down");
  if (!counts) return platform.log.info(named, "a replica ended with its machine or service; it starts again");
  platform.log.warn({ ...named, exit_code }, "an application crashed");
  await recordCrash(platform.db, {
    ...{ org_id: workload.org_id, project_id: workload.project_id, deployment: workload.number },
    ...{
      process: workload.process,
      replica: replica.ordinal,
      out_of_memory,
      exit_code,
      restarts,
      next_start_in_ms: crash.pauseMs,
    },
  });
}

function keyOf({ workload, ordinal }: Replica) {
  return { org_id: workload.org_id, deployment_id: workload.deployment_id, process: workload.process, ordinal };
}
