import type { Failure } from "../../ports/failure.ts";
import type { Db, Tx } from "../../store/database.ts";
import type { Wakeups } from "../../store/wakeups.ts";
import { endComing } from "../deployments/deployments.ts";
import { cancelBuild } from "./lifecycle-queries.ts";

/** Cancels a build, or the deployment in progress that came from it. Returns false when there was nothing to cancel. */
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

export const pushEnded: Failure = {
  stage: "switch",
  code: "push_ended",
  summary: "The push was interrupted before this deployment went live.",
  hint: "Push again.",
  log_tail: [],
};

export const cancelled: Failure = {
  stage: "switch",
  code: "cancelled",
  summary: "The deployment was cancelled before it went live.",
  hint: "Push again, or deploy again with: berth deploy",
  log_tail: [],
};
