import { releaseOperation, takeOperation, type TakenOperation } from "../../features/backups/backups.ts";
import {
  applyFinalRetention,
  applyRetention,
  dropUnwanted,
  requestDueBackups,
  sweepLeftovers,
} from "./backup-upkeep.ts";
import { performBackupWork } from "./backup-work.ts";
import type { Task, Platform } from "../platform.ts";
import { createLeasedTask } from "../leased-work.ts";

const periodMs = 5000;
const dueEveryMs = 60_000;
const sweepEveryMs = 3_600_000;
// Right after the start, the projects' database servers are not up yet.
const firstSweepAfterMs = 60_000;
const pauseSeconds = 10;

/** Creates, restores and verifies backups, requests the daily ones, and cleans up afterwards. */
export function backupsTask(platform: Platform, wake: () => void): Task {
  const requestDue = every(dueEveryMs, () => requestDueBackups(platform));
  const sweep = every(
    sweepEveryMs,
    async (signal) => {
      await applyFinalRetention(platform);
      await applyRetention(platform, signal);
      await sweepLeftovers(platform, signal);
    },
    firstSweepAfterMs,
  );
  return createLeasedTask<TakenOperation>(platform, wake, {
    name: "backups",
    periodMs,
    topics: ["backups"],
    table: "backup_operation",
    limit: platform.settings.backups.concurrent,
    // A restore runs functions of the project's, which may take as long as they like.
    perOrganization: Math.max(1, platform.settings.backups.concurrent - 1),
    take: (inProgress) => takeOperation(platform.db, platform.owner, inProgress),
    async work(operation, lease, signal) {
      const limited = AbortSignal.any([signal, AbortSignal.timeout(platform.settings.backups.timeoutMs)]);
      await performBackupWork(platform, operation, lease, limited);
      if (operation.kind === "backup") await applyRetention(platform, signal, operation);
    },
    // Any worker may claim the operation again; it first cleans up what this attempt left.
    broken: (_, lease, stopping) =>
      releaseOperation(platform.db, lease, {
        pauseSeconds: stopping ? 0 : pauseSeconds,
        uncounted: stopping,
      }),
    before: (_, signal) => requestDue(signal),
    async after(_, signal) {
      await dropUnwanted(platform, signal);
      await sweep(signal);
      return undefined;
    },
  });
}

/** Runs `work` at the first call after `firstAfterMs` and then at most once per interval; after a failure the next call runs it again. */
function every(intervalMs: number, work: (signal: AbortSignal) => Promise<unknown>, firstAfterMs = 0) {
  let last = performance.now() - intervalMs + firstAfterMs;
  return async (signal: AbortSignal) => {
    const now = performance.now();
    if (now - last < intervalMs) return;
    await work(signal);
    last = now;
  };
}
