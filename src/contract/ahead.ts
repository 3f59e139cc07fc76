import { z } from "zod";

/** What the branch that deploys has and what serves has not, as after a rollback. The next deploy of the branch brings it back. */
export const ahead = z.object({
  branch: z.string(),
  /** The newest commit of the branch that has been live. */
  commit: z.string(),
  /** The deployment that serves instead. */
  serves: z.object({ number: z.number().int(), commit: z.string() }),
  /** How many commits of the branch do not serve; null when they were not counted. */
  commits: z.number().int().nullable(),
  /** The same as a sentence. */
  text: z.string(),
});
export type Ahead = z.output<typeof ahead>;

/** Returns the sentence about a branch that is ahead of what serves; `deploy` names the deploy that ends this. */
export function aheadText({ branch, serves, commits }: Omit<Ahead, "text">, deploy = "the next deploy"): string {
  const what = commits === null ? "its newer commits" : commits === 1 ? "1 commit" : `${commits} commits`;
  return `${branch} is ahead of what serves: #${serves.number} serves ${serves.commit.slice(0, 7)}; ${deploy} brings back ${what}.`;
}
