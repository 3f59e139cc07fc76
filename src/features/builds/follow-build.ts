import { newId } from "../../kit/ids.ts";
import type { LogStore } from "../../ports/log-store.ts";
import type { Quarantine, RefChange, Repositories } from "../../ports/repositories.ts";
import type { Db } from "../../store/database.ts";
import { createSignal, type Signal } from "../../store/signal.ts";
import type { Wakeups } from "../../store/wakeups.ts";
import { cancelWork, pushEnded } from "./cancel.ts";
import { progressOf, renewWaiting, type NewBuild } from "./lifecycle-queries.ts";
import { requestBuild } from "./request.ts";

/** The dependencies of `followBuild`; `owner` identifies this control plane. */
export interface Following {
  readonly db: Db;
  readonly wakeups: Wakeups;
  readonly logStore: LogStore;
  readonly owner: string;
  /** Tests choose how often the lease of a waiting build is renewed. */
  readonly renewEveryMs?: number;
}

export interface FollowedBuild {
  readonly org_id: string;
  readonly id: string;
  /** Cancels the build when aborted. */
  readonly signal: AbortSignal;
}

interface Verdict {
  readonly accepted: boolean;
  readonly notes?: readonly string[];
}

const readLogEveryMs = 40;
// A wake-up announces an outcome at once, but it may be lost, so poll as well.
const askEveryMs = 500;
const usualRenewEveryMs = 5000;
const readBytes = 256 * 1024;

export interface FollowedPush extends Pick<FollowedBuild, "org_id" | "signal"> {
  readonly project_id: string;
  readonly actor: string;
  readonly copies_data: boolean;
  readonly token_id: string | null;
  readonly quarantine: Quarantine | null;
}

/** The branch that deploys, with its new commit and the lines that its log begins with. */
interface PushedBranch extends Pick<NewBuild, "message" | "author" | "branch"> {
  readonly ref: RefChange & { new: string };
  readonly notes: readonly string[];
}

export interface PushVerdict {
  readonly accepted: boolean;
  /** The build created for the push, if any. Its commit stays pinned until git has moved the ref. */
  readonly build: { readonly id: string; readonly branch: string } | null;
}

/** Streams the log of a build and its deployment, renews its lease, and resolves with whether the deployment went live. */
export async function followBuild(
  following: Following,
  build: FollowedBuild,
  onLine: (line: string) => void,
): Promise<{ accepted: boolean }> {
  // Wake up on every outcome, because the id of the build's deployment is not known yet.
  const wakeup = createSignal(following.wakeups, ["outcomes"]);
  try {
    return await untilDecided(following, build, { wakeup, onLine });
  } finally {
    wakeup.stop();
  }
}

/** Queues the build of a pushed commit and follows it until it is live or refused. */
export async function buildPush(
  receiving: Following & { readonly repositories: Pick<Repositories, "pin" | "unpin"> },
  push: FollowedPush,
  target: PushedBranch,
  onLine: (line: string) => void,
): Promise<PushVerdict> {
  const { db, repositories, owner } = receiving;
  const id = newId("bld");
  await repositories.pin(push.project_id, id, target.ref.new, push.quarantine);
  await addToLog(receiving.logStore, id, target.notes, onLine);
  const { org_id, project_id, copies_data, token_id } = push;
  const { ref, branch, message, author } = target;
  const source = { commit: ref.new, old_commit: ref.old, branch, message, author };
  const request = { id, org_id, project_id, copies_data, token_id, requested_by: push.actor, lease_owner: owner };
  await db
    .transaction()
    .execute((tx) => requestBuild(tx, receiving.wakeups, { ...request, ...source, origin: "push" }));
  const verdict = await followBuild(receiving, { org_id: push.org_id, id, signal: push.signal }, onLine);
  // Unpin a refused push's commit, so that it leaves no objects behind. The commit of an accepted push is unpinned once git has moved the ref.
  if (!verdict.accepted) await repositories.unpin(push.project_id, id);
  return { ...verdict, build: { id, branch: target.branch } };
}

interface Watching {
  readonly wakeup: Signal;
  readonly onLine: (line: string) => void;
}

async function untilDecided(following: Following, build: FollowedBuild, { wakeup, onLine }: Watching) {
  const { db, owner, logStore, renewEveryMs = usualRenewEveryMs } = following;
  const startedAt = Date.now();
  let offset = 0;
  let renewedAt = startedAt;
  let renewals = 0;
  let askedAt = 0;
  for (let isSignalled = true; ; isSignalled = await wakeup.wait(readLogEveryMs)) {
    const isTime = isSignalled || build.signal.aborted || Date.now() - askedAt >= askEveryMs;
    if (isTime) askedAt = Date.now();
    // Query the verdict before reading the log, so that the log of an ended build is complete.
    const verdict = isTime ? await verdictOf(db, build) : undefined;
    if (build.signal.aborted && verdict === undefined)
      await cancelWork(following.db, following.wakeups, build, pushEnded);
    offset = await pump(logStore, build.id, offset, onLine);
    if (verdict !== undefined) {
      await addToLog(logStore, build.id, verdict.notes ?? [], onLine);
      await pump(logStore, build.id, offset, onLine);
      return { accepted: verdict.accepted };
    }
    if (Date.now() - renewedAt > renewEveryMs) {
      renewedAt = Date.now();
      if ((await renewWaiting(db, build.id, owner)) && ++renewals % 2 === 0)
        await addToLog(logStore, build.id, [stillWaiting(renewedAt - startedAt)], onLine);
    }
  }
}

const stillWaiting = (ms: number): string =>
  `       still waiting after ${Math.round(ms / 1000)} s: other builds are running`;

/** Appends lines to the log and sends them to its follower. If storing fails, only the follower gets them. */
export async function addToLog(
  logStore: LogStore,
  buildId: string,
  lines: readonly string[],
  onLine: (line: string) => void,
): Promise<void> {
  if (lines.length > 0) await logStore.appendBuild(buildId, lines).catch(() => lines.forEach((line) => onLine(line)));
}

async function pump(
  logStore: LogStore,
  buildId: string,
  from: number,
  onLine: (line: string) => void,
): Promise<number> {
  let offset = from;
  for (;;) {
    const chunk = await logStore.readBuild(buildId, offset, readBytes);
    if (chunk.next_offset === offset) return offset;
    offset = chunk.next_offset;
    for (const line of chunk.text.replace(/\n$/, "").split("\n")) onLine(line);
  }
}

async function verdictOf(db: Db, { org_id, id }: FollowedBuild): Promise<Verdict | undefined> {
  const progress = await progressOf(db, org_id, id);
  if (progress === undefined) return { accepted: false };
  if (progress.build === "superseded") return { accepted: false, notes: [" !     A newer push replaced this one."] };
  if (progress.build === "cancelled") return { accepted: false, notes: [" !     The build was cancelled."] };
  if (progress.build === "failed") return { accepted: false };
  if (progress.build !== "succeeded") return undefined;
  switch (progress.deployment) {
    case "active":
      // The lease is released once the edge routes to the deployment; only then is it live.
      return progress.leased ? undefined : { accepted: true };
    case "retired":
      return { accepted: true };
    case "failed":
    case "superseded":
      return { accepted: false };
    default:
      return undefined;
  }
}
