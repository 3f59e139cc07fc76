import type { TakenDeployment } from "../../features/deployments/deployments.ts";
import type { Platform } from "../platform.ts";

type Deployed = Pick<TakenDeployment, "project_id" | "branch" | "commit" | "old_commit">;

/** Moves a branch to the serving commit; resolves to false if it is there already or a later push has moved it. Idempotent. */
export async function moveBranch({ ports }: Pick<Platform, "ports">, deployed: Deployed): Promise<boolean> {
  const { repositories } = ports;
  const { project_id, branch, commit, old_commit } = deployed;
  const ref = `refs/heads/${branch}`;
  const wasDamaged = await repositories.repairRef(project_id, ref);
  const now = await repositories.resolve(project_id, ref);
  // If the branch is not at the commit before the push, a later push has moved it, unless its value was lost.
  if (now === commit || (now !== old_commit && !wasDamaged)) return false;
  const moved = await repositories.moveRef(project_id, ref, now, commit);
  if (moved && old_commit === null) await repositories.setHead(project_id, ref);
  return moved;
}
