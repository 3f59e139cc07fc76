import { releaseOperation, takeOperation, type TakenOperation } from "../../features/backups/backups.ts";
import { releaseDeadLeases } from "../../store/leases.ts";
import { applyRetention, dropUnwanted, requestDueBackups, sweepLeftovers } from "../backup-upkeep.ts";
import { performBackupWork } from "../backup-work.ts";
import type { Task } from "../driver.ts";
import { createLeasedWork } from "../leased-work.ts";
import type { World } from "../world.ts";

const periodMs = 5000;
const dueEveryMs = 60_000;
const sweepEveryMs = 3_600_000;
const pauseSeconds = 10;

/** Makes, restores and verifies backups, asks for the daily ones, and cleans up behind all of them. */
export function backupsTask(world: World, wake: () => void): Task {
  const work = createLeasedWork<TakenOperation>(world.db, world.log, {
    table: "backup_operation",
    owner: world.owner,
    limit: world.settings.backups.concurrent,
    take: (underWay) => takeOperation(world.db, world.owner, underWay),
    work: (operation, lease, signal) => {
      const limited = AbortSignal.any([signal, AbortSignal.timeout(world.settings.backups.timeoutMs)]);
      return performBackupWork(world, operation, lease, limited);
    },
    // It is taken again, by whoever is there; what it left is cleaned up first.
    broken: (_, lease, stopping) =>
      releaseOperation(world.db, lease, {
        pauseSeconds: stopping ? 0 : pauseSeconds,
        uncounted: stopping,
      }),
  });
  const upkeep = every(dueEveryMs, () => requestDueBackups(world));
  const sweep = every(sweepEveryMs, async () => {
    await applyRetention(world);
    await sweepLeftovers(world);
  });
  return {
    name: "backups",
    periodMs,
    topics: ["backups"],
    async run(signal) {
      await releaseDeadLeases(world.db, "backup_operation");
      await upkeep();
      const running = await work.fill(signal, wake);
      await dropUnwanted(world);
      await sweep();
      return { detail: `${running} running` };
    },
    settle: () => work.settle(),
  };
}

/** Runs at the first call and then at most this often; what failed is run again at the next call. */
function every(intervalMs: number, work: () => Promise<unknown>): () => Promise<void> {
  let last = Number.NEGATIVE_INFINITY;
  return async () => {
    const now = performance.now();
    if (now - last < intervalMs) return;
    await work();
    last = now;
  };
}
