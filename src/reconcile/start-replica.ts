import { claimAttempt, markRunning, type ReplicaKey } from "../features/replicas/replicas.ts";
import type { Instance, Workload } from "../ports/runtime.ts";
import type { Platform } from "./platform.ts";

/** Starts a replica under a new attempt number; `seen` is the number of an instance that the row may not have. */
export async function startReplica(
  platform: Platform,
  workload: Workload,
  replica: ReplicaKey & { readonly seen?: number },
): Promise<Instance> {
  const { seen, ...key } = replica;
  const attempt = await claimAttempt(platform.db, key, platform.machine, seen);
  const instance = await platform.ports.runtime.start(workload, { ordinal: key.ordinal, attempt });
  await recordInstance(platform, key, instance);
  return instance;
}

export async function recordInstance(platform: Platform, key: ReplicaKey, instance: Instance): Promise<void> {
  const { host, port } = instance.address ?? { host: null, port: null };
  await markRunning(platform.db, { ...key, machine: platform.machine, attempt: instance.attempt, host, port });
}
