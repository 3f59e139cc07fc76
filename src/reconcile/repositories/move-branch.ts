import type { Platform } from "../platform.ts";

interface Deployed {
  readonly project_id: string;
  readonly branch: string;
  readonly commit: string;
  readonly old_commit: string | null;
}

/** Moves a branch to the commit that serves; false when it is there, or a later push has moved it. Idempotent. */
export async function moveBranch({ ports }: Pick<Platform, "ports">, deployed: Deployed): Promise<boolean> {
  const { repositories } = ports;
  const { project_id, branch, commit, old_commit } = deployed;
  const ref = `refs/heads/${branch}`;
  const wasDamaged = await repositories.repairRef(project_id, ref);
  const now = await repositories.resolve(project_id, ref);
  // Anything but the commit before the push means that a later push has moved it, unless nothing is left of where it was.
  if (now === commit || (now !== old_commit && !wasDamaged)) return false;
  const moved = await repositories.moveRef(project_id, ref, now, commit);
  if (moved && old_commit === null) await repositories.setHead(project_id, ref);
  return moved;
}
