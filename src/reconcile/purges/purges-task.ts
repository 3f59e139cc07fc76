import { removeEndedPreviews } from "../../features/previews/previews.ts";
import { releasePurge, requestDuePurges, takePurge, type TakenPurge } from "../../features/purges/purges.ts";
import { provenTime } from "../../store/proven-time.ts";
import type { Task, Platform } from "../platform.ts";
import { createLeasedTask } from "../leased-work.ts";
import { performPurge } from "./perform-purge.ts";

const retrySeconds = 5;

/** Purges projects on request, those that were deleted long enough ago, and previews that have ended. */
export function purgesTask(platform: Platform, wake: () => void): Task {
  const { db, owner } = platform;
  let failed = false;
  return createLeasedTask<TakenPurge>(platform, wake, {
    name: "purges",
    periodMs: 60_000,
    topics: ["purges"],
    table: "project_purge",
    ...{ limit: 2, perOrganization: 1 },
    take: (inProgress) => takePurge(db, owner, inProgress),
    work: (purge, lease, signal) => performPurge(platform, purge, lease, signal),
    // Every step is idempotent, so the next attempt continues where this one failed.
    broken: async (_, lease, stopping) => {
      failed = true;
      await releasePurge(db, lease, stopping ? 0 : retrySeconds);
    },
    async before() {
      await removeEndedPreviews(db, platform.wakeups);
      const days = platform.settings.purgeDays;
      if (days > 0) await requestDuePurges(db, platform.wakeups, { now: await provenTime(platform), days });
    },
    async after() {
      const againMs = failed ? (retrySeconds + 1) * 1000 : undefined;
      failed = false;
      return { againMs };
    },
  });
}
