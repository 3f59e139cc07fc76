import type { Answer } from "../../../contract/client.ts";

type Deployment = Pick<
  Answer<"deployments.list">["deployments"][number],
  "number" | "commit" | "trigger" | "build_id" | "activated_at"
>;

export interface CommitsBetween {
  /** Whether a rollback takes these commits away or brings them back. */
  readonly way: "undone" | "back";
  /** Newest first. */
  readonly commits: readonly { readonly commit: string; readonly message: string }[];
}

/** Returns the commits that a rollback undoes, those deployed after its target; from a project rolled back before, it may bring some back. */
export function commitsBetween(
  deployments: readonly Deployment[],
  builds: readonly { readonly id: string; readonly message: string }[],
  { active, target }: { readonly active: number; readonly target: number },
): CommitsBetween {
  const [from, to] = [deployedAs(deployments, active), deployedAs(deployments, target)];
  const [low, high] = from < to ? [from, to] : [to, from];
  const kept = deployments.find(({ number }) => number === low)?.commit;
  const messages = new Map(builds.map(({ id, message }) => [id, message]));
  const found = new Map<string, string>();
  for (const { number, commit, build_id, activated_at } of deployments)
    if (number > low && number <= high && activated_at !== null && commit !== kept && !found.has(commit))
      found.set(commit, messages.get(build_id) ?? "");
  return {
    way: from < to ? "back" : "undone",
    commits: [...found].map(([commit, message]) => ({ commit, message })),
  };
}

/** Returns the number under which the commit of a deployment was deployed before it was rolled back to. */
function deployedAs(deployments: readonly Deployment[], number: number): number {
  const deployment = deployments.find((each) => each.number === number);
  if (deployment?.trigger !== "rollback") return number;
  const earlier = deployments.find(
    (each) => each.number < number && each.commit === deployment.commit && each.trigger !== "rollback",
  );
  return earlier?.number ?? number;
}
