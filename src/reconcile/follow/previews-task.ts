import { delayPreviewFetch, takePreviewFetch, type TakenPreviewFetch } from "../../features/follow/follow.ts";
import type { Task, Platform } from "../platform.ts";
import { createLeasedTask } from "../leased-work.ts";
import { fetchPreview } from "./fetch-preview.ts";

const concurrent = 4;
// A repository's host may be slow on purpose, and a preview may wait for its data.
const perOrganization = 2;
const retryMs = 60_000;

/** Fetches branches of followed repositories that get a preview, when a delivery reports a push to them. */
export function followedPreviewsTask(platform: Platform, again: () => void): Task {
  const { db, owner } = platform;
  return createLeasedTask<TakenPreviewFetch>(platform, again, {
    name: "followed-previews",
    periodMs: 15_000,
    topics: ["follow"],
    table: "preview_fetch",
    ...{ limit: concurrent, perOrganization },
    take: (inProgress) => takePreviewFetch(db, owner, inProgress),
    work: (fetch, lease, signal) => fetchPreview(platform, { fetch, lease }, signal),
    broken: (_, lease, stopping) => delayPreviewFetch(db, lease, stopping ? 0 : retryMs),
  });
}
