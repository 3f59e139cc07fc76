import type { GitAccess, GitCaller, GitGate, GitPath, GitProject } from "./gate.ts";

export type Admission =
  | { readonly outcome: "admitted"; readonly caller: GitCaller; readonly project: GitProject }
  | { readonly outcome: "missing" }
  | { readonly outcome: "refused" | "unavailable"; readonly reason: string };

export interface RequestedAccess {
  readonly path: GitPath;
  readonly access: GitAccess;
}

/** The same text for a repository that does not exist and for another organization's, so that it reveals neither. */
export const missingText = "There is no such repository, or you may not see it.\n";

/** Finds the caller that has the requested access; one SSH key may stand for callers in many organizations. */
export async function admit(
  gate: GitGate,
  callers: readonly GitCaller[],
  { path, access }: RequestedAccess,
): Promise<Admission> {
  for (const caller of callers) {
    if (caller.organization_slug !== path.organization_slug) continue;
    const found = await gate.findProject(caller, path, access);
    if (found.outcome === "found") return { outcome: "admitted", caller, project: found.project };
    if (found.outcome !== "missing") return found;
  }
  return { outcome: "missing" };
}

/** Returns whether a call that was admitted before may continue. `unavailable` does not revoke it. */
export function mayGoOn({ outcome }: Admission): boolean {
  return outcome === "admitted" || outcome === "unavailable";
}
