import type { Answer } from "../../contract/client.ts";
import { limits as apiLimits } from "../../contract/limits.ts";
import type { ComparedCommits, ComparisonLimits, Repositories } from "../../ports/repositories.ts";

/** Compares two commits of a repository line by line, within the limits of an answer. */
export async function compareIn(
  repositories: Pick<Repositories, "compare">,
  projectId: string,
  change: ComparedCommits,
  limits: ComparisonLimits = mostCompared,
): Promise<Answer<"deployments.lines">> {
  if (change.from === change.to) return { commits: [], files: [], complete: true };
  const compared = await repositories.compare(projectId, change, limits);
  if (compared === null) return { commits: [], files: null, complete: true };
  const commits = compared.commits.map(({ at, ...commit }) => ({ ...commit, at: at.toISOString() }));
  return { ...compared, commits, files: [...compared.files] };
}

const mostCompared = {
  commits: apiLimits.compared_commits,
  files: apiLimits.compared_files,
  fileBytes: apiLimits.compared_file_bytes,
  bytes: apiLimits.compared_bytes,
  timeoutMs: apiLimits.compare_seconds * 1000,
};
