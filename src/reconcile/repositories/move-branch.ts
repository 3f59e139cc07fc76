import type { TakenDeployment } from "../../features/deployments/deployments.ts";
import type { Platform } from "../platform.ts";

type Deployed = Pick<TakenDeployment, "project_id" | "branch" | "commit" | "old_commit"> & { readonly trigger: string };
type Ports = Pick<Platform, "ports">;

/** Moves a branch to the serving commit; resolves to false if it is there already or a later push has moved it. Idempotent. */
export async function moveBranch(platform: Ports, deployed: Deployed): Promise<boolean> {
  const { repositories } = platform.ports;
  const { project_id, branch, commit, old_commit } = deployed;
  const ref = `refs/heads/${branch}`;
  const wasDamaged = await repositories.repairRef(project_id, ref);
  const now = await repositories.resolve(project_id, ref);
  // If the branch is not where the commit began, a later push has moved it, unless its value was lost.
  if (now === commit || (!wasDamaged && !(await isStart(platform, deployed, now)))) return false;
  const moved = await repositories.moveRef(project_id, ref, now, commit);
  if (moved && old_commit === null) await repositories.setHead(project_id, ref);
  return moved;
}

/**
 * Returns whether the branch can still be moved to the commit of a deployment that is about to go live: nothing has moved the branch since its
 * push or upload began. Otherwise git would refuse the push after it has gone live.
 */
export async function isBranchFree(platform: Ports, deployed: Deployed): Promise<boolean> {
  const now = await platform.ports.repositories.resolve(deployed.project_id, `refs/heads/${deployed.branch}`);
  return now === null || now === deployed.commit || isStart(platform, deployed, now);
}

/** An upload begins at the head, or at an upload that was in progress: its parent. */
async function isStart({ ports }: Ports, { project_id, commit, old_commit, trigger }: Deployed, now: string | null) {
  if (now === old_commit) return true;
  return trigger === "upload" && now !== null && now === (await ports.repositories.parentOf(project_id, commit));
}
