import { setTimeout as sleep } from "node:timers/promises";
import { isCalled } from "../../features/cron/cron.ts";
import type { Instance } from "../../ports/runtime.ts";
import type { Platform } from "../platform.ts";

const pollMs = 100;

/** Resolves when neither the edge nor a cron run has anything open to these instances, or the drain time since `since` is over. */
export async function waitUntilIdle(
  platform: Platform,
  instances: readonly Instance[],
  since: string | null,
): Promise<void> {
  const end = (since === null ? Date.now() : Date.parse(since)) + platform.settings.drainMs;
  const targets = instances.flatMap((instance) =>
    instance.address === null ? [] : [`${instance.address.host}:${instance.address.port}`],
  );
  const deployments = [...new Set(instances.map((instance) => instance.workload_id))];
  while (Date.now() < end) {
    const open = await platform.ports.edge.openRequests();
    const isIdle = targets.every((target) => (open.get(target) ?? 0) === 0);
    if (isIdle && !(await isCalled(platform.db, deployments))) return;
    await sleep(pollMs);
  }
}
