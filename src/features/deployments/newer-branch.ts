import type { Tx } from "../../store/database.ts";
import { deployedCommit, getDeployment } from "./queries.ts";

/** Returns the branch that deploys when the newest of its commits that went live is not the deployment's; null when it is, or none did. */
export async function newerBranch(
  tx: Tx,
  project: { readonly key: { org_id: string; project_id: string }; readonly deploy_branch: string | null },
  deploymentId: string,
): Promise<string | null> {
  const { org_id, project_id } = project.key;
  const branch = project.deploy_branch ?? "main";
  const rolledBack = await getDeployment(tx, org_id, deploymentId);
  const newest = await deployedCommit(tx, org_id, project_id, branch);
  return newest === undefined || newest.commit === rolledBack?.commit ? null : branch;
}
