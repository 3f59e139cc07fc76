import { recordEvent } from "../../features/activity/activity.ts";
import {
  deleteBranch,
  endBranch,
  releaseBranch,
  takeBranch,
  type TakenBranch,
} from "../../features/branches/branches.ts";
import { requireLease, type Lease } from "../../store/leases.ts";
import { createResting } from "../databases/databases-task.ts";
import type { Task, Platform } from "../platform.ts";
import { createLeasedTask } from "../leased-work.ts";
import { makeBranch, type Made, type Making, type Problem } from "./make-branch.ts";
import { sweepBranches, tendBranches } from "./tend-branches.ts";

const mostAttempts = 3;
const pauseSeconds = 5;
const limitMs = 2 * 3_600_000;

/** Makes branches of databases, keeps them running, and removes those that have ended. */
export function branchesTask(platform: Platform, wake: () => void): Task {
  const resting = createResting();
  return createLeasedTask<TakenBranch>(platform, wake, {
    name: "branches",
    periodMs: 5000,
    topics: ["branches"],
    table: "database_branch",
    limit: 4,
    // A mask runs for as long as its setting allows.
    perOrganization: 2,
    take: (inProgress) => takeBranch(platform.db, platform.owner, { inProgress, now: platform.clock.now() }),
    async work(branch, lease, stop) {
      const signal = AbortSignal.any([stop, AbortSignal.timeout(limitMs)]);
      const making = { platform, branch, lease, signal };
      if (branch.status !== "copying" || hasEnded(platform, branch)) return remove(making);
      await end(making, branch.attempts > mostAttempts ? gaveUp : await makeBranch(making));
    },
    broken: (_, lease, stopping) =>
      releaseBranch(platform.db, lease, { pauseSeconds: stopping ? 0 : pauseSeconds, uncounted: stopping }),
    async after() {
      await tendBranches(platform, resting);
      await sweepBranches(platform);
      return undefined;
    },
  });
}

const gaveUp: Problem = { code: "unavailable", summary: "The platform failed several times to make the branch." };

function hasEnded({ clock }: Platform, { is_abandoned, used_by, expires_at }: TakenBranch): boolean {
  return is_abandoned || (used_by === null && Date.parse(expires_at) <= clock.now().getTime());
}

async function remove({ platform, branch, lease }: Making): Promise<void> {
  const { org_id, project_id, name: target } = branch;
  await destroy(platform, lease, branch.id);
  await platform.db.transaction().execute(async (tx) => {
    if (!(await deleteBranch(tx, lease))) return;
    if (branch.status !== "deleting")
      await recordEvent(tx, { org_id, project_id, action: "database.branch_ended", target });
    await platform.wakeups.send(tx, "outcomes", branch.id);
  });
}

async function end({ platform, branch, lease }: Making, made: Made | Problem): Promise<void> {
  const { org_id, project_id, name: target } = branch;
  if ("code" in made) await destroy(platform, lease, branch.id);
  await platform.db.transaction().execute(async (tx) => {
    if (!(await endBranch(tx, lease, made))) return;
    if ("code" in made)
      await recordEvent(tx, {
        ...{ org_id, project_id, action: "database.branch_failed", target },
        detail: { code: made.code, reason: made.summary },
      });
    await platform.wakeups.send(tx, "outcomes", branch.id);
  });
}

async function destroy({ db, ports }: Platform, lease: Lease, id: string): Promise<void> {
  await requireLease(db, lease);
  await ports.postgresHost.destroy(id);
}
