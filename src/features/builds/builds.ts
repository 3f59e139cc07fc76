import type { Failure } from "../../ports/failure.ts";
import type { Db, Tx } from "../../store/database.ts";

export { closeInterrupted, endBuild, takeQueued, type TakenBuild } from "./lifecycle-queries.ts";
export { requestBuild } from "./request.ts";
export { receivePush, type Receiving } from "./receive.ts";

/** Said of a build or deployment whose control plane ended in the middle of a push. */
export const interrupted: Failure = {
  stage: "receive",
  code: "interrupted",
  summary: "The platform was restarted while it worked on this push.",
  hint: "Nothing was changed. Push again.",
  log_tail: [],
};

/** The newest build of a project that made an image, or undefined. */
export async function newestSource(db: Db | Tx, orgId: string, projectId: string, commit?: string) {
  let query = db
    .selectFrom("build")
    .select(["id", "commit", "branch", "message"])
    .where("org_id", "=", orgId)
    .where("project_id", "=", projectId)
    .where("status", "=", "succeeded");
  if (commit !== undefined) query = query.where("commit", "=", commit);
  return query.orderBy("number", "desc").limit(1).executeTakeFirst();
}
