import { activeDeployments } from "../../features/cron/cron.ts";
import type { InstanceAddress } from "../../ports/runtime.ts";
import type { Platform } from "../platform.ts";

/** The addresses of projects' applications, cached for a second because many jobs are due at the same time. */
export interface CronTargets {
  /** Looks up those projects that are not cached, in one query. */
  prepare(projectIds: readonly string[]): Promise<void>;
  /** Resolves to the ready replicas of a deployment; empty if it has none or no longer serves. */
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
      // The deployment may have become active since the last look-up.
      if (!targets.has(deploymentId)) await lookUp([projectId]);
      return targets.get(deploymentId) ?? [];
    },
  };
}
