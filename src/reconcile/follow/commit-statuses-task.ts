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
import type { Task } from "../driver.ts";
import type { Platform } from "../platform.ts";

const timeoutMs = 10_000;
const holdSeconds = 60;
const mostFailures = 6;
const mostAtOnce = 8;
const longestPauseMs = 30 * 60_000;

/** Reports the state of commits to the hosts of followed repositories. */
export function commitStatusesTask(platform: Platform): Task {
  const { db } = platform;
  return {
    name: "commit-statuses",
    periodMs: 10_000,
    topics: ["builds", "outcomes"],
    async run(signal) {
      const lane = async () => {
        let shown = 0;
        for (;;) {
          const status = signal.aborted ? undefined : await takeStatus(db, holdSeconds);
          if (status === undefined) return shown;
          await show(platform, status, signal);
          shown += 1;
        }
      };
      const counts = await Promise.all(Array.from({ length: mostAtOnce }, lane));
      return { detail: `${counts.reduce((sum, count) => sum + count, 0)} set` };
    },
  };
}

const descriptions = {
  pending: "Berth builds and deploys this commit.",
  success: "Live on Berth.",
  failure: "Berth could not deploy this commit; the previous deployment stays live.",
};

async function show(platform: Platform, status: DueStatus, signal: AbortSignal): Promise<void> {
  const { db, vault, ports, controlUrl } = platform;
  const { slug, state, deployment } = status;
  const targetUrl = `${controlUrl()}/projects/${slug}/${deployment === null ? "builds" : "deployments"}`;
  const token = openFollow(vault, status.follow_id, "token", status.sealed_token) ?? "";
  const request = statusRequest({ ...status, description: descriptions[state], targetUrl }, token);
  const outcome = await ports.outgoingHttp.post({ ...request, timeoutMs, excerptBytes: 1024 }, signal);
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
