import {
  deleteOldFollowDeliveries,
  endFetch,
  nextFetchMs,
  takeFollow,
  type TakenFollow,
} from "../../features/follow/follow.ts";
import { releaseDeadLeases } from "../../store/leases.ts";
import type { Task } from "../driver.ts";
import { createLeasedWork } from "../leased-work.ts";
import type { Platform } from "../platform.ts";
import { fetchBranch } from "./fetch-branch.ts";

const concurrent = 8;
// A repository's host may be slow on purpose.
const perOrganization = 3;
const retryMs = 60_000;

/** Fetches followed branches when a delivery, a person or the polling interval requires it. */
export function followTask(platform: Platform, again: () => void): Task {
  const { db, owner } = platform;
  const work = createLeasedWork<TakenFollow>(platform, {
    table: "project_follow",
    ...{ limit: concurrent, perOrganization },
    take: (inProgress) => takeFollow(db, owner, inProgress),
    work: (follow, lease, signal) => fetchBranch(platform, { follow, lease }, signal),
    broken: async (follow, lease, stopping) => {
      const problem = stopping ? null : "The platform failed with an internal error; its log has the details.";
      const end = { problem, againMs: stopping ? 0 : retryMs };
      await db.transaction().execute((tx) => endFetch(tx, follow, lease, end));
    },
  });
  return {
    name: "follow",
    periodMs: 15_000,
    // A branch waits until its project's build and deployment have ended.
    topics: ["follow", "outcomes"],
    async run(signal) {
      await releaseDeadLeases(db, "project_follow");
      const running = await work.fill(signal, again);
      await deleteOldFollowDeliveries(db);
      const waitMs = await nextFetchMs(db);
      const againMs = waitMs === undefined ? undefined : Math.max(1000, waitMs);
      return { detail: `${running} under way`, ...(againMs === undefined ? {} : { againMs }) };
    },
    settle: () => work.settle(),
  };
}
