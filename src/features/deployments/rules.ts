import type { Failure } from "../../ports/failure.ts";

const ofOthers = new Set([
  "interrupted",
  "platform_fault",
  "project_deleted",
  "org_suspended",
  "token_ended",
  "edge_unavailable",
  "image_missing",
  "runtime_unavailable",
]);

type Values = Readonly<Record<string, string>>;

/** Compares the keys of two sets of variables; values are compared but never returned. */
export function compareKeys(from: Values, to: Values): Record<"added" | "removed" | "changed", string[]> {
  const [before, after] = [Object.keys(from).toSorted(), Object.keys(to).toSorted()];
  return {
    added: after.filter((key) => !Object.hasOwn(from, key)),
    removed: before.filter((key) => !Object.hasOwn(to, key)),
    changed: after.filter((key) => Object.hasOwn(from, key) && from[key] !== to[key]),
  };
}

/** Returns whether the deployed application caused the failure, so that a retry would fail too. */
export function isOwnFault(failure: Pick<Failure, "code">): boolean {
  return !ofOthers.has(failure.code);
}
