import { aheadText, type Ahead } from "../../contract/ahead.ts";
import type { Quarantine, Repositories } from "../../ports/repositories.ts";
import type { Db } from "../../store/database.ts";
import { activeOf, deployedCommit } from "../deployments/deployments.ts";
import type { ProjectKey } from "../projects/projects.ts";

interface NextDeploy {
  readonly commit: string;
  readonly quarantine: Quarantine | null;
}

/** Returns what the branch that deploys has and what serves has not, or null. Null as well if the deploy `next` does not continue it. */
export async function aheadOf(
  { db, repositories }: { readonly db: Db; readonly repositories: Pick<Repositories, "countCommits"> },
  { org_id, project_id, branch }: ProjectKey & { readonly branch: string },
  next?: NextDeploy,
): Promise<Ahead | null> {
  const [active, newest] = await Promise.all([
    activeOf(db, org_id, project_id),
    deployedCommit(db, org_id, project_id, branch),
  ]);
  if (active === undefined || newest === undefined || newest.commit === active.commit) return null;
  const count = (from: string, { commit: to, quarantine }: NextDeploy) =>
    repositories.countCommits(project_id, { from, to, quarantine });
  if (next !== undefined && (await count(newest.commit, next))?.removed !== 0) return null;
  const commits = (await count(active.commit, { commit: newest.commit, quarantine: null }))?.added ?? null;
  if (commits === 0) return null;
  const found = { branch, commit: newest.commit, serves: { number: active.number, commit: active.commit }, commits };
  return { ...found, text: aheadText(found, next === undefined ? "the next deploy" : "this deploy") };
}
