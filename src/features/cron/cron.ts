import type { Image } from "../../ports/builder.ts";
import type { Db } from "../../store/database.ts";

export { claimDue, correctNextMinutes } from "./claim.ts";
export {
  activeDeployments,
  adoptRuns,
  closeLostRuns,
  finishRuns,
  isCalled,
  nextMinute,
  pruneRuns,
  releaseRuns,
  renewRuns,
  startRuns,
  type RunEnd,
  type StartedRun,
  type WaitingRun,
} from "./lifecycle-queries.ts";

/** The environment of a called deployment, as far as its answers may not show it. */
export async function calledDeployment(db: Db, orgId: string, deploymentId: string) {
  const row = await db
    .selectFrom("deployment")
    .innerJoin("project", "project.id", "deployment.project_id")
    .select([
      "deployment.id",
      "deployment.org_id",
      "deployment.project_id",
      "deployment.number",
      "deployment.commit",
      "deployment.image",
      "deployment.port",
      "deployment.sealed_variables",
      "project.number as project_number",
      "project.slug",
      "project.hostname",
      "project.replicas",
      "project.sealed_cron_secret",
    ])
    .where("deployment.org_id", "=", orgId)
    .where("deployment.id", "=", deploymentId)
    .executeTakeFirst();
  return row as (typeof row & { readonly image: Image }) | undefined;
}
