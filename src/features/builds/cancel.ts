import type { Failure } from "../../ports/failure.ts";
import type { Db, Tx } from "../../store/database.ts";
import type { Wakeups } from "../../store/wakeups.ts";
import { endComing } from "../deployments/deployments.ts";
import { cancelBuild } from "./lifecycle-queries.ts";

/** Ends a build, or the deployment that is on its way from it. What is live stays live. False when there was nothing to end. */
export async function cancelWork(
  db: Db | Tx,
  wakeups: Wakeups,
  build: { readonly org_id: string; readonly id: string },
  failure: Failure,
): Promise<boolean> {
  const wasBuilding = await cancelBuild(db, build.org_id, build.id);
  const deployment = await endComing(db, build, failure);
  if (deployment !== undefined) await wakeups.send(db, "apps", deployment.project_id);
  if (!wasBuilding && deployment === undefined) return false;
  for (const topic of ["builds", "outcomes"] as const) await wakeups.send(db, topic, build.id);
  return true;
}

/** Why a deployment ended whose pusher has left. */
export const pushEnded: Failure = {
  stage: "switch",
  code: "push_ended",
  summary: "The push ended before this went live.",
  hint: "Push again.",
  log_tail: [],
};

/** Why a deployment ended that a caller has cancelled. */
export const cancelled: Failure = {
  stage: "switch",
  code: "cancelled",
  summary: "It was cancelled before it went live.",
  hint: "Push again, or deploy again with: berth deploy",
  log_tail: [],
};
