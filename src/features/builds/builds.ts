import { buildStates } from "../../contract/states.ts";
import type { Failure } from "../../ports/failure.ts";
import type { Db, Tx } from "../../store/database.ts";
import { hasComingDeployment } from "./queries.ts";

export { closeInterrupted, endBuild, promotedBuild, takeQueued, type TakenBuild } from "./lifecycle-queries.ts";
export { readMask, readSourceSettings, type DeploymentSettings } from "./read-source-settings.ts";
export { isUnseen, requireMayDeploy, requirePreviewBranch } from "./agents-preview.ts";
export { selectBuild as findBuild } from "./queries.ts";
export { requestBuild } from "./request.ts";
export { keepSource } from "./keep-source.ts";
export { buildUpload, givenFiles, placeOf, releaseReach, requireUpload, type Uploaded } from "./source.ts";
export { receivePush, type Receiving } from "./receive.ts";
export { buildCommandsOf, invalidFile, missingFolder, overruled, winning } from "./source-settings.ts";
export { watchedButUntouched } from "./watched.ts";

/** The failure of a build or deployment whose control plane ended during a push. */
export const interrupted: Failure = {
  stage: "receive",
  code: "interrupted",
  summary: "The platform was restarted while it worked on this push.",
  hint: "Nothing was changed. Push again.",
  log_tail: [],
};

/** Returns the newest succeeded build of `commit`. Without `commit`, returns the newest build that went live, so that refused pushes are skipped. */
export async function newestSource(db: Db | Tx, orgId: string, projectId: string, commit?: string) {
  let query = db
    .selectFrom("build")
    .select(["id", "commit", "branch", "message", "author"])
    .where(({ and }) => and({ org_id: orgId, project_id: projectId }))
    .where(({ and }) => and({ status: "succeeded", rehearse_only: false }));
  query =
    commit === undefined
      ? query.where((of) =>
          of.exists(
            of
              .selectFrom("deployment")
              .select("deployment.id")
              .whereRef("deployment.build_id", "=", "build.id")
              .where("deployment.org_id", "=", orgId)
              .where("deployment.status", "in", ["active", "retired"]),
          ),
        )
      : query.where("commit", "=", commit);
  return query.orderBy("number", "desc").limit(1).executeTakeFirst();
}

/** Returns whether a build's log is complete: the build has ended, and so has the deployment that follows from it. */
export async function isLogFinished(
  db: Db | Tx,
  orgId: string,
  { id, status }: { readonly id: string; readonly status: keyof typeof buildStates },
): Promise<boolean> {
  return buildStates[status].length === 0 && !(await hasComingDeployment(db, orgId, id));
}
