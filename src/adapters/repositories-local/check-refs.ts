import { run, type RunOptions } from "../../kit/exec.ts";
import type { RefChange } from "../../ports/repositories.ts";
import type { GitCommands } from "./commands.ts";
import { commitId, noCommit } from "./git-names.ts";

/** Returns git's first complaint about refs that a push would set; null if there is none. `outside` is the same place without a quarantine's path. */
export async function checkRefs(
  git: GitCommands,
  { inside, outside }: { readonly inside: RunOptions; readonly outside: RunOptions },
  refs: readonly RefChange[],
): Promise<string | null> {
  const kept = refs.flatMap((ref) => (ref.new === null ? [] : [commitId(ref.new)]));
  const checks = [run(git.updateRefs(), { ...outside, stdin: refTransaction(refs) })];
  if (kept.length > 0) checks.push(run(git.checkConnected(), { ...inside, stdin: `${kept.join("\n")}\n` }));
  const failed = (await Promise.all(checks)).find(({ exitCode }) => exitCode !== 0);
  return failed === undefined ? null : (failed.stderr.trim().split("\n")[0] ?? "").replace(/^(?:fatal|error): /, "");
}

/** Returns the input of a transaction that prepares these changes of refs, and undoes that. */
function refTransaction(refs: readonly RefChange[]): string {
  const changes = refs.flatMap(({ name, old, new: to }) =>
    to === null
      ? old === null
        ? []
        : [`delete ${name}`, commitId(old)]
      : [`update ${name}`, commitId(to), old === null ? noCommit : commitId(old)],
  );
  return ["start", ...changes, "prepare", "abort", ""].join("\0");
}
