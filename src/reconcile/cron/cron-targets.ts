import { activeDeployments } from "../../features/cron/cron.ts";
import type { InstanceAddress } from "../../ports/runtime.ts";
import type { Platform } from "../platform.ts";

/** Where the applications of projects run, cached for a second: many jobs are due in the same one. */
export interface CronTargets {
  /** Looks up, in one go, what is not known of these projects. */
  prepare(projectIds: readonly string[]): Promise<void>;
  /** The ready replicas of a deployment; none when it has none, or serves no more. */
  of(projectId: string, deploymentId: string): Promise<readonly InstanceAddress[]>;
}

const keptMs = 1000;

export function createCronTargets(platform: Platform): CronTargets {
  const targets = new Map<string, readonly InstanceAddress[]>();
  const known = new Set<string>();
  let forgottenAt = -Infinity;

  async function lookUp(projectIds: readonly string[]): Promise<void> {
    const deployments = await activeDeployments(platform.db, projectIds);
    for (const { id, targets: found } of deployments) targets.set(id, found);
    for (const id of projectIds) known.add(id);
  }

  return {
    async prepare(projectIds) {
      if (performance.now() - forgottenAt > keptMs) {
        forgottenAt = performance.now();
        targets.clear();
        known.clear();
      }
      const unknown = projectIds.filter((id) => !known.has(id));
      if (unknown.length > 0) await lookUp(unknown);
    },
    async of(projectId, deploymentId) {
      // A deployment that became active since the look-up.
      if (!targets.has(deploymentId)) await lookUp([projectId]);
      return targets.get(deploymentId) ?? [];
    },
  };
}
