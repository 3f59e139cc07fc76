import {
  deleteOldFollowDeliveries,
  endFetch,
  nextFetchMs,
  takeFollow,
  type TakenFollow,
  endDeliveries,
  insertDelivery,
  openFollow,
  planEvent,
  queueCommitStatus,
  retryAfterMs,
  showsStatuses,
  trimDeliveries,
  waitingDeliveries,
} from "../../features/follow/follow.ts";
import type { Task, Platform } from "../platform.ts";
import { createLeasedTask } from "../leased-work.ts";
import { keepSource, placeOf, requestBuild, watchedButUntouched } from "../../features/builds/builds.ts";
import { activeOf } from "../../features/deployments/deployments.ts";
import { newId } from "../../kit/ids.ts";
import { lockProject } from "../../features/projects/projects.ts";
import type { Fetched } from "../../ports/repositories.ts";
import type { Tx } from "../../store/database.ts";
import type { Lease } from "../../store/leases.ts";
import { roomProblem } from "./room-problem.ts";

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

interface Fetch {
  readonly platform: Platform;
  readonly follow: TakenFollow;
  readonly lease: Lease;
  readonly signal: AbortSignal;
  readonly waiting: Awaited<ReturnType<typeof waitingDeliveries>>;
}

type Queued = Extract<Fetched, { outcome: "fetched" }>;

/** Fetches a followed branch and queues the build of a new commit, at most one for all waiting deliveries. */
async function fetchBranch(
  platform: Platform,
  { follow, lease }: { readonly follow: TakenFollow; readonly lease: Lease },
  signal: AbortSignal,
): Promise<void> {
  const fetch = { platform, follow, lease, signal, waiting: await waitingDeliveries(platform.db, follow.id) };
  const refused = await roomProblem(platform);
  if (refused !== null) return fail(fetch, refused);
  const { repositories } = platform.ports;
  await repositories.ensure(follow.project_id, follow.deploy_branch !== null);
  const fetched = await repositories.fetch(follow.project_id, await remoteOf(fetch), signal);
  // The platform is stopping, so this is no failure of the repository.
  if (signal.aborted) return;
  switch (fetched.outcome) {
    case "failed":
      return fail(fetch, fetched.reason);
    case "unchanged":
      return ignore(fetch, fetched, `No new commit: ${fetched.commit.slice(0, 8)} was already fetched.`);
    case "fetched":
      return build(fetch, fetched);
  }
}

async function remoteOf({ platform, follow, waiting }: Fetch) {
  const { vault, settings } = platform;
  const { id, org_id, project_id, url, branch, host_keys, host_key_pin, sealed_key, sealed_token } = follow;
  const live = (await activeOf(platform.db, org_id, project_id))?.commit ?? null;
  // A manual request retries a commit that was built but did not go live.
  const isForced = waiting.some(({ source }) => source === "manual");
  return {
    ...{ url, branch, hostKeys: host_keys, hostKeyPin: host_key_pin, maxBytes: settings.follow.packBytes },
    known: isForced ? live : (follow.commit ?? live),
    token: openFollow(vault, id, "token", sealed_token),
    privateKey: openFollow(vault, id, "key", sealed_key),
  };
}

async function build(fetch: Fetch, fetched: Queued): Promise<void> {
  const { platform, follow } = fetch;
  const { org_id, project_id } = follow;
  const { db, ports, settings } = platform;
  const { commit, quarantine } = fetched;
  const place = await placeOf(platform, { org_id, id: project_id, deploy_branch: follow.deploy_branch });
  const push = { org_id, project_id, quarantine };
  const parts = { db, repositories: ports.repositories };
  const untouched = await watchedButUntouched(parts, push, { ...follow, branch: place.branch, commit });
  if (untouched !== null) {
    await ports.repositories.discard(project_id, quarantine);
    return ignore(fetch, fetched, `Nothing to deploy: no file changed in ${untouched.join(", ")}.`);
  }
  const source = { commit, quarantine, pin: "follow", limits: settings.follow.treeLimits };
  const kept = await keepSource(ports, { org_id, project_id }, source);
  if (kept.outcome === "refused") return ignore(fetch, fetched, `${kept.summary} ${kept.hint}`);
  if (fetch.waiting.length > 0 && fetch.waiting.every(({ event }) => event === planEvent))
    return ignore(fetch, fetched, "Fetched for a plan: nothing is deployed.");
  const { id, message, author } = kept;
  await conclude(fetch, fetched, async (tx) => {
    const build = { id, org_id, project_id, origin: "follow", commit, branch: place.branch, message, author } as const;
    const requested_by = new URL(follow.url).host;
    await requestBuild(tx, platform.wakeups, { ...build, old_commit: place.head, requested_by, lease_owner: null });
    if (follow.sealed_token !== null && showsStatuses(follow.provider))
      await queueCommitStatus(tx, { build_id: id, follow_id: follow.id });
    await deployed(tx, fetch, { commit, build_id: id });
  });
}

/** Credits the deployment to the delivery that named the commit, else to the newest; the others led to the same fetch. */
async function deployed(tx: Tx, { follow, waiting }: Fetch, what: { commit: string; build_id: string }): Promise<void> {
  const chosen = waiting.find(({ commit }) => commit === what.commit) ?? waiting[0] ?? (await ownDelivery(tx, follow));
  const others = waiting.filter(({ id }) => id !== chosen.id).map(({ id }) => id);
  await endDeliveries(tx, [chosen.id], { ...what, status: "deployed", reason: null });
  const reason = `Berth fetched the branch once for several deliveries; the build belongs to ${chosen.id}.`;
  await endDeliveries(tx, others, { status: "ignored", reason, commit: what.commit, build_id: null });
}

async function ownDelivery(tx: Tx, { id: follow_id, org_id }: TakenFollow) {
  const id = newId("fdl");
  const row = { id, org_id, follow_id, source: "poll", event: "poll", status: "waiting", signed: true } as const;
  await insertDelivery(tx, row);
  return { id };
}

async function ignore(fetch: Fetch, fetched: Pick<Queued, "commit" | "hostKeys">, reason: string): Promise<void> {
  const ids = fetch.waiting.map(({ id }) => id);
  const { commit } = fetched;
  await conclude(fetch, fetched, (tx) => endDeliveries(tx, ids, { status: "ignored", reason, commit, build_id: null }));
}

/** Stores the outcome of the fetch and the fetched commit in one transaction. */
async function conclude(
  { platform, follow, lease }: Fetch,
  { commit, hostKeys }: Pick<Queued, "commit" | "hostKeys">,
  change: (tx: Tx) => Promise<void>,
): Promise<void> {
  const end = { commit, host_keys: hostKeys, problem: null, againMs: platform.settings.follow.pollMs };
  await platform.db.transaction().execute(async (tx) => {
    await lockProject(tx, follow);
    if (!(await endFetch(tx, follow, lease, end))) throw new Error("the lease of the follow was lost");
    await change(tx);
    await trimDeliveries(tx, follow.id);
  });
}

/** The deliveries stay waiting, and the fetch is retried with growing pauses. */
async function fail({ platform, follow, lease }: Fetch, problem: string): Promise<void> {
  const againMs = retryAfterMs(follow.failures + 1, platform.settings.follow.pollMs);
  await platform.db.transaction().execute((tx) => endFetch(tx, follow, lease, { problem, againMs }));
}
