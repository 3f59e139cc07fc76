import { pushedDeployments } from "../../features/deployments/deployments.ts";
import { settlesWithin } from "../../kit/settles-within.ts";
import type { Task, Platform } from "../platform.ts";
import { moveBranch } from "./move-branch.ts";

/** Repairs repositories after a crash: branches of activated commits that were not moved, or lost. Maintains them once a day. */
export function repositoriesTask(platform: Platform): Task {
  const startedAt = platform.clock.now();
  // Builds whose branch is known to be right: each is checked once with git, because only another push moves the branch.
  const asDeployed = new Set<string>();
  let sweptAt = 0;
  let sweeping: Promise<void> = Promise.resolve();
  return {
    name: "repositories",
    periodMs: 30_000,
    topics: [],
    async run() {
      const rows = await pushedDeployments(platform.db, startedAt);
      let mended = 0;
      for (const row of rows.filter((each) => !asDeployed.has(each.build_id))) {
        // One damaged repository must not stop the repair of others.
        const moved = await repairBranch(platform, row).catch((error: unknown) =>
          logFailure(platform, row.project_id, error),
        );
        if (moved === true) mended += 1;
        if (moved !== undefined) asDeployed.add(row.build_id);
      }
      if (Date.now() - sweptAt > sweepEveryMs) {
        sweptAt = Date.now();
        sweeping = sweep(platform);
      }
      return { detail: mended === 0 ? `${rows.length} branches as deployed` : `moved ${mended} branches` };
    },
    settle: async () => void (await settlesWithin(sweeping, 500)),
  };
}

// Packing may take long and is not urgent.
const sweepEveryMs = 24 * 3600 * 1000;

async function sweep(platform: Platform): Promise<void> {
  await platform.ports.repositories
    .sweep()
    .catch((error: unknown) =>
      platform.log.warn({ err: error }, "could not tidy the repositories; it will be tried tomorrow"),
    );
}

function logFailure(platform: Platform, projectId: string, error: unknown): undefined {
  platform.log.error(
    { err: error, project_id: projectId },
    "could not compare a branch with what serves; it will be tried again",
  );
  return undefined;
}

async function repairBranch(
  platform: Platform,
  row: Awaited<ReturnType<typeof pushedDeployments>>[number],
): Promise<boolean> {
  const { repositories } = platform.ports;
  const moved = await moveBranch(platform, row);
  if (moved) {
    platform.log.info({ project_id: row.project_id, commit: row.commit }, "moved a branch to the commit that serves");
    await repositories.unpin(row.project_id, row.build_id);
  }
  return moved;
}
