import type { InstanceKey, Workload } from "../ports/runtime.ts";

/** Labels by which the runtime finds and identifies its containers without the database, whose rows may be gone. */
export const labels = {
  runtime: "berth.runtime",
  role: "berth.role",
  workload: "berth.workload",
  ordinal: "berth.ordinal",
  attempt: "berth.attempt",
  project: "berth.project",
  image: "berth.image",
  port: "berth.port",
  started: "berth.started_at",
  check: "berth.check",
} as const;

export type ContainerRole = "app" | "network" | "once" | "tree";

export function labelsOf(tag: string, role: ContainerRole, workload: Workload, key: InstanceKey) {
  return {
    [labels.runtime]: tag,
    [labels.role]: role,
    [labels.workload]: workload.id,
    [labels.ordinal]: String(key.ordinal),
    [labels.attempt]: String(key.attempt),
    [labels.project]: workload.project_id,
    [labels.image]: workload.image_ref,
    [labels.port]: workload.port === null ? "" : String(workload.port),
    [labels.started]: new Date().toISOString(),
  };
}
