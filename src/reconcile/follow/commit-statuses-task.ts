import {
  markNotShown,
  markShown,
  openFollow,
  retryAfterMs,
  statusRequest,
  takeStatus,
  type DueStatus,
} from "../../features/follow/follow.ts";
import type { OutgoingOutcome } from "../../ports/outgoing-http.ts";
import type { Task, Platform } from "../platform.ts";
import { inProgress } from "../leased-work.ts";

const timeoutMs = 10_000;
const holdSeconds = 60;
const mostFailures = 6;
const mostAtOnce = 8;
// An organization's host may be slow.
const perOrganization = 3;
const longestPauseMs = 30 * 60_000;

/** Reports the state of commits to the hosts of followed repositories. */
export function commitStatusesTask(platform: Platform): Task {
  const { db, log } = platform;
  return {
    name: "commit-statuses",
    periodMs: 10_000,
    topics: ["builds", "outcomes"],
    async run(signal) {
      const running = new Map<DueStatus, Promise<void>>();
      let shown = 0;
      for (;;) {
        const follows = [...running.keys()].map(({ follow_id, org_id }) => ({ id: follow_id, org_id }));
        const mayTake = running.size < mostAtOnce && !signal.aborted;
        const status = mayTake ? await takeStatus(db, holdSeconds, inProgress(follows, perOrganization)) : undefined;
        if (status !== undefined) {
          const work = show(platform, status, signal)
            .catch((error: unknown) => log.error({ err: error }, "could not record a commit status; it is sent again"))
            .finally(() => running.delete(status));
          running.set(status, work);
          shown += 1;
        } else if (running.size > 0) await Promise.race(running.values());
        else return { detail: `${shown} set` };
      }
    },
  };
}

const ofPreviews = {
  pending: "Berth builds a preview of this commit.",
  success: "The preview is live.",
  failure: "Berth could not build a preview of this commit; an earlier one stays.",
};

const ofDeploys = {
  pending: "Berth builds and deploys this commit.",
  success: "Live on Berth.",
  failure: "Berth could not deploy this commit; the previous deployment stays live.",
};

async function show(platform: Platform, status: DueStatus, signal: AbortSignal): Promise<void> {
  const { db, vault, ports, controlUrl } = platform;
  const { slug, state, deployment, hostname } = status;
  const page = `${controlUrl()}/projects/${slug}/${deployment === null ? "builds" : "deployments"}`;
  const targetUrl = hostname !== null && state === "success" ? platform.appUrl(hostname) : page;
  const descriptions = hostname === null ? ofDeploys : ofPreviews;
  const token = openFollow(vault, status.follow_id, "token", status.sealed_token) ?? "";
  const request = statusRequest({ ...status, description: descriptions[state], targetUrl }, token);
  const outcome = await ports.outgoingHttp.send({ ...request, timeoutMs, excerptBytes: 1024 }, signal);
  // The platform is stopping, so this is no failure of the host; the status is sent after the next start.
  if (signal.aborted) return;
  const problem = problemOf(outcome);
  await db.transaction().execute((tx) => {
    if (problem === null) return markShown(tx, status);
    const failures = status.failures + 1;
    return markNotShown(tx, status, problem, failures >= mostFailures ? null : retryAfterMs(failures, longestPauseMs));
  });
}

function problemOf(outcome: OutgoingOutcome): string | null {
  if (outcome.outcome === "failed") return outcome.reason;
  const { status } = outcome;
  if (status >= 200 && status < 300) return null;
  const isRight = status === 401 || status === 403 || status === 404;
  const hint = isRight ? " The token needs permission to set commit statuses of this repository." : "";
  return `The repository's host answered with status ${status}.${hint}`;
}
