import { workloadSource } from "../../features/deployments/deployments.ts";
import type { WorkloadRow } from "../../features/replicas/replicas.ts";
import type { Instance } from "../../ports/runtime.ts";
import type { OutputSource } from "../logs/output-source.ts";
import type { Platform } from "../platform.ts";
import { redactorOf, workloadOf } from "../workload.ts";

/** Returns the output of these instances of a deployment's process type, or of all that are there, for the project's log. */
export async function outputOf(
  platform: Platform,
  row: WorkloadRow,
  given?: readonly Instance[],
): Promise<OutputSource> {
  const { id, deployment_id, process, org_id, project_id, number } = row;
  const redactor = async () =>
    redactorOf(await workloadOf(platform, await workloadSource(platform.db, org_id, deployment_id), process));
  const instances = given ?? (await platform.ports.runtime.observe()).filter(({ workload_id }) => workload_id === id);
  return { workload_id: id, project_id, deployment: number, process, instances, redactor };
}
