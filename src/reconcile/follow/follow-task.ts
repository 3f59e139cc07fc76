import {
  deleteOldFollowDeliveries,
  endFetch,
  nextFetchMs,
  takeFollow,
  type TakenFollow,
} from "../../features/follow/follow.ts";
import type { Task, Platform } from "../platform.ts";
import { createLeasedTask } from "../leased-work.ts";
import { fetchBranch } from "./fetch-branch.ts";

const concurrent = 8;
// A repository's host may be slow on purpose.
const perOrganization = 3;
const retryMs = 60_000;

/** Fetches followed branches when a delivery, a person or the polling interval requires it. */
export function followTask(platform: Platform, again: () => void): Task {
  const { db, owner } = platform;
  return createLeasedTask<TakenFollow>(platform, again, {
    name: "follow",
    periodMs: 15_000,
    // A branch waits until its project's build and deployment have ended.
    topics: ["follow", "outcomes"],
    table: "project_follow",
    ...{ limit: concurrent, perOrganization },
    take: (inProgress) => takeFollow(db, owner, inProgress),
    work: (follow, lease, signal) => fetchBranch(platform, { follow, lease }, signal),
    broken: async (follow, lease, stopping) => {
      const problem = stopping ? null : "The platform failed with an internal error; its log has the details.";
      const end = { problem, againMs: stopping ? 0 : retryMs };
      await db.transaction().execute((tx) => endFetch(tx, follow, lease, end));
    },
    async after() {
      await deleteOldFollowDeliveries(db);
      const waitMs = await nextFetchMs(db);
      return { againMs: waitMs === undefined ? undefined : Math.max(1000, waitMs) };
    },
  });
}
