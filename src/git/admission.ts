import type { GitAccess, GitCaller, GitGate, GitPath, GitProject } from "./gate.ts";

export type Admission =
  | { readonly outcome: "admitted"; readonly caller: GitCaller; readonly project: GitProject }
  | { readonly outcome: "missing" }
  | { readonly outcome: "refused" | "unavailable"; readonly reason: string };

export interface RequestedAccess {
  readonly path: GitPath;
  readonly access: GitAccess;
}

/** The one text for what does not exist and for what belongs to another organization. */
export const missingText = "There is no such repository, or you may not see it.\n";

/** Finds which of several callers (one key, many organizations) may have what is wanted. */
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

/** Whether a call that was admitted once may go on: its caller still has the right to it. */
export function mayGoOn({ outcome }: Admission): boolean {
  return outcome === "admitted" || outcome === "unavailable";
}
