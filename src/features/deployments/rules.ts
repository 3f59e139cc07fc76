import type { Failure } from "../../ports/failure.ts";

const ofOthers = new Set(["interrupted", "platform_fault", "project_deleted", "org_suspended", "edge_unavailable"]);

/** Whether a deployment failed by what was deployed, so that the same would fail again. */
export function isOwnFault(failure: Pick<Failure, "code">): boolean {
  return !ofOthers.has(failure.code);
}
