import type { Quarantine, Repositories } from "../../ports/repositories.ts";
import type { Db } from "../../store/database.ts";
import { deployedCommit } from "../deployments/deployments.ts";
import type { ProjectKey } from "../projects/projects.ts";
import { readSourceSettings } from "./read-source-settings.ts";
import { hasWatched, watchedPatterns } from "./rules.ts";

interface Watched {
  readonly root: string | null;
  readonly watch: readonly string[] | null;
  readonly branch: string;
  readonly commit: string;
}

const mostChanges = 100_000;

/** Returns the watched paths if there are any and the push changes none of them since the deployed commit; else null. */
export async function watchedButUntouched(
  { db, repositories }: { readonly db: Db; readonly repositories: Repositories },
  push: ProjectKey & { readonly quarantine: Quarantine | null },
  { root, watch, branch, commit: to }: Watched,
): Promise<readonly string[] | null> {
  const { org_id, project_id, quarantine } = push;
  const from = (await deployedCommit(db, org_id, project_id, branch))?.commit;
  if (from === undefined || from === to) return null;
  const read = await readSourceSettings(repositories, { project_id, commit: to, root, quarantine });
  if (read.outcome === "invalid") return null;
  const patterns = watchedPatterns(watch, read.file, read.folder);
  if (patterns === null) return null;
  const changed = await repositories.changedPaths(project_id, { from, to, quarantine }, mostChanges);
  return changed === null || hasWatched(changed, [...patterns, read.path]) ? null : patterns;
}
