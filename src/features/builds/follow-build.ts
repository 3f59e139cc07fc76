import type { LogStore } from "../../ports/log-store.ts";
import type { Db } from "../../store/database.ts";
import { createSignal, type Signal } from "../../store/signal.ts";
import type { Wakeups } from "../../store/wakeups.ts";
import { cancelWork, pushEnded } from "./cancel.ts";
import { progressOf, renewWaiting } from "./lifecycle-queries.ts";

/** What following needs of the world; `owner` is this control plane. */
export interface Following {
  readonly db: Db;
  readonly wakeups: Wakeups;
  readonly logStore: LogStore;
  readonly owner: string;
}

export interface FollowedBuild {
  readonly org_id: string;
  readonly id: string;
  /** Aborts when nothing may come of it any more: it is cancelled then. */
  readonly signal: AbortSignal;
}

interface Verdict {
  readonly accepted: boolean;
  readonly notes?: readonly string[];
}

const readLogEveryMs = 40;
// An outcome is announced at once, by a hint that may be lost.
const askEveryMs = 500;
const renewEveryMs = 5000;
const readBytes = 256 * 1024;

/** Streams a build's log as it is stored, that of its deployment too, and resolves with whether it went live. Keeps it wanted meanwhile. */
export async function followBuild(
  following: Following,
  build: FollowedBuild,
  onLine: (line: string) => void,
): Promise<{ accepted: boolean }> {
  // With every outcome: which deployment comes of a build is not known here.
  const wakeup = createSignal(following.wakeups, ["outcomes"]);
  try {
    return await untilDecided(following, build, { wakeup, onLine });
  } finally {
    wakeup.stop();
  }
}

interface Watching {
  readonly wakeup: Signal;
  readonly onLine: (line: string) => void;
}

async function untilDecided(following: Following, build: FollowedBuild, { wakeup, onLine }: Watching) {
  const { db, owner, logStore } = following;
  let offset = 0;
  let renewedAt = Date.now();
  let askedAt = 0;
  for (let isSignalled = true; ; isSignalled = await wakeup.wait(readLogEveryMs)) {
    const isTime = isSignalled || build.signal.aborted || Date.now() - askedAt >= askEveryMs;
    if (isTime) askedAt = Date.now();
    // Asked before the log is read, so that the log of a build that has ended is complete.
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
      await renewWaiting(db, build.id, owner);
      renewedAt = Date.now();
    }
  }
}

/** Adds to the log what its follower is to see too. When it cannot be stored, he alone sees it. */
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
  if (progress.build === "superseded")
    return { accepted: false, notes: [" !     A newer push took this one's place."] };
  if (progress.build === "cancelled") return { accepted: false, notes: [" !     The build was cancelled."] };
  if (progress.build === "failed") return { accepted: false };
  if (progress.build !== "succeeded") return undefined;
  switch (progress.deployment) {
    case "active":
      // Its lease ends when the edge goes by it: not before is it live.
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
