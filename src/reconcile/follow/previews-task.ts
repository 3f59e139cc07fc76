import { delayPreviewFetch, takePreviewFetch, type TakenPreviewFetch } from "../../features/follow/follow.ts";
import type { Task, Platform } from "../platform.ts";
import { createLeasedTask } from "../leased-work.ts";
import { requestBuild } from "../../features/builds/builds.ts";
import * as follow from "../../features/follow/follow.ts";
import {
  copyToPreview,
  isPinned,
  openPreview,
  removePreview,
  selectPreview,
  type Preview,
} from "../../features/previews/previews.ts";
import type { Fetched } from "../../ports/repositories.ts";
import type { Tx } from "../../store/database.ts";
import type { Lease } from "../../store/leases.ts";
import { roomProblem } from "./room-problem.ts";

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

interface Fetch {
  readonly platform: Platform;
  readonly fetch: follow.TakenPreviewFetch;
  readonly lease: Lease;
  readonly signal: AbortSignal;
  readonly waiting: Awaited<ReturnType<typeof follow.waitingDeliveries>>;
}

type New = Extract<Fetched, { outcome: "fetched" }>;

const mostFailures = 5;

/** Fetches a branch and queues the build of its preview. Idempotent: a commit that the preview's newest build has is not built again. */
async function fetchPreview(
  platform: Platform,
  { fetch: taken, lease }: Pick<Fetch, "fetch" | "lease">,
  signal: AbortSignal,
): Promise<void> {
  const waiting = await follow.waitingDeliveries(platform.db, taken.follow_id, taken.branch);
  const fetch = { platform, fetch: taken, lease, signal, waiting };
  const refused = await roomProblem(platform);
  if (refused !== null) return tryLater(fetch, refused);
  const { org_id, project_id, branch, url, host_keys, host_key_pin } = taken;
  const found = await selectPreview(platform.db, { org_id, project_id }, branch);
  const isThere = found?.deleted_at === null;
  await platform.ports.repositories.ensure(project_id);
  const remote = {
    ...{ url, branch, hostKeys: host_keys, hostKeyPin: host_key_pin, maxBytes: platform.settings.follow.packBytes },
    known: isThere ? await follow.newestBuilt(platform.db, { org_id, project_id: found.id }) : null,
    token: follow.openFollow(platform.vault, taken.follow_id, "token", taken.sealed_token),
    privateKey: follow.openFollow(platform.vault, taken.follow_id, "key", taken.sealed_key),
  };
  const fetched = await platform.ports.repositories.fetch(project_id, remote, signal);
  // The platform is stopping, so this is no failure of the repository.
  if (signal.aborted) return follow.delayPreviewFetch(platform.db, lease, 0);
  if (fetched.outcome === "fetched") return build(fetch, fetched);
  if (fetched.outcome === "unchanged")
    return ignore(fetch, fetched.commit, `No new commit: ${fetched.commit.slice(0, 8)} was already fetched.`);
  if (fetched.isMissing === true) return removeWithBranch(fetch, isThere && !isPinned(found) ? found.id : null);
  return tryLater(fetch, fetched.reason);
}

/** Tries again after a pause; after several failures, the deliveries are told the reason. */
async function tryLater(fetch: Fetch, reason: string): Promise<void> {
  const { platform, lease } = fetch;
  const failures = fetch.fetch.failures + 1;
  if (failures >= mostFailures) return ignore(fetch, null, reason);
  await follow.delayPreviewFetch(platform.db, lease, follow.retryAfterMs(failures, platform.settings.follow.pollMs));
}

async function build(fetch: Fetch, fetched: New): Promise<void> {
  const { platform, fetch: taken, signal } = fetch;
  const { org_id, project_id, branch, follow_id, id: pin } = taken;
  const { repositories } = platform.ports;
  const { commit } = fetched;
  const kept = await keep(fetch, fetched);
  if ("refused" in kept) return ignore(fetch, commit, kept.refused);
  try {
    const previewing = { ...platform, previews: platform.settings.previews };
    const source = { from: project_id, branch, commit, quarantine: null };
    const fill = (preview: Preview) => copyToPreview(repositories, preview, source);
    const opened = await openPreview(previewing, { org_id, project_id, branch }, { signal, fill });
    if (opened.outcome === "refused") return await ignore(fetch, commit, `${opened.summary} ${opened.hint}`);
    const { preview, filled } = opened;
    await conclude(fetch, async (tx) => {
      const { id } = await requestBuild(tx, platform.wakeups, {
        ...{ org_id, project_id: preview.project_id, origin: "follow", commit, branch, ...kept, ...filled },
        ...{ requested_by: new URL(taken.url).host, lease_owner: null },
      });
      if (taken.sealed_token !== null && follow.showsStatuses(taken.provider)) {
        await follow.queueCommitStatus(tx, { build_id: id, follow_id });
        await follow.queueComment(tx, { project_id: preview.project_id, org_id, follow_id });
      }
      const [chosen, ...others] = fetch.waiting.map((each) => each.id);
      if (chosen === undefined) return;
      await follow.endDeliveries(tx, [chosen], { status: "deployed", reason: null, commit, build_id: id });
      const reason = `Berth fetched the branch once for several deliveries; the build belongs to ${chosen}.`;
      await follow.endDeliveries(tx, others, { status: "ignored", reason, commit, build_id: null });
    });
  } finally {
    await repositories.unpin(project_id, pin);
  }
}

/** Makes a fetched commit the head of its branch in the project's own repository. */
async function keep({ platform, fetch: { project_id, branch, id: pin } }: Fetch, { commit, quarantine }: New) {
  const { repositories } = platform.ports;
  try {
    const inspection = await repositories.inspect(project_id, commit, quarantine, platform.settings.follow.treeLimits);
    if (inspection.outcome === "refused") return { refused: `${inspection.summary} ${inspection.hint}` };
    await repositories.pin(project_id, pin, commit, quarantine);
    const ref = `refs/heads/${branch}`;
    await repositories.moveRef(project_id, ref, await repositories.resolve(project_id, ref), commit);
    return { message: inspection.message, author: inspection.author };
  } finally {
    await repositories.discard(project_id, quarantine);
  }
}

/** The branch is gone, and its preview with it unless that is pinned. */
async function removeWithBranch(fetch: Fetch, previewId: string | null): Promise<void> {
  const { org_id, branch, url } = fetch.fetch;
  const { wakeups } = fetch.platform;
  const reason = `The repository has no branch ${branch}${previewId === null ? "" : ", so its preview was removed"}.`;
  await conclude(fetch, async (tx) => {
    if (previewId !== null)
      await removePreview(tx, wakeups, { org_id, project_id: previewId, requested_by: new URL(url).host });
    await endWaiting(tx, fetch, null, reason);
  });
}

const ignore = (fetch: Fetch, commit: string | null, reason: string): Promise<void> =>
  conclude(fetch, (tx) => endWaiting(tx, fetch, commit, reason));

const endWaiting = (tx: Tx, { waiting }: Fetch, commit: string | null, reason: string): Promise<void> =>
  follow.endDeliveries(
    tx,
    waiting.map(({ id }) => id),
    { status: "ignored", reason, commit, build_id: null },
  );

async function conclude({ platform, fetch, lease }: Fetch, change: (tx: Tx) => Promise<void>): Promise<void> {
  await platform.db.transaction().execute(async (tx) => {
    await change(tx);
    if (!(await follow.endPreviewFetch(tx, fetch, lease))) throw new Error("the lease of a preview's fetch was lost");
  });
}
