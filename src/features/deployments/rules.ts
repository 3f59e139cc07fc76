import type { Failure } from "../../ports/failure.ts";

const ofOthers = new Set(["interrupted", "platform_fault", "project_deleted", "org_suspended", "edge_unavailable"]);

type Values = Readonly<Record<string, string>>;

/** How the keys of two sets of variables differ; values are compared and never returned. */
export function compareKeys(from: Values, to: Values): Record<"added" | "removed" | "changed", string[]> {
  const [before, after] = [Object.keys(from).toSorted(), Object.keys(to).toSorted()];
  return {
    added: after.filter((key) => !Object.hasOwn(from, key)),
    removed: before.filter((key) => !Object.hasOwn(to, key)),
    changed: after.filter((key) => Object.hasOwn(from, key) && from[key] !== to[key]),
  };
}

/** Whether a deployment failed by what was deployed, so that the same would fail again. */
export function isOwnFault(failure: Pick<Failure, "code">): boolean {
  return !ofOthers.has(failure.code);
}
