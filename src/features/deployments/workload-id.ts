/** What the runtime calls a process type of a deployment. */
export function workloadId({ deployment_id, process }: { deployment_id: string; process: string }): string {
  return process === web ? deployment_id : `${deployment_id}.${process}`;
}

/** The process type that gets requests. */
export const web = "web";

/** The parts of a workload's name. */
export function parseWorkloadId(id: string): { readonly deployment_id: string; readonly process: string } {
  const [deployment_id = "", process = web] = id.split(".");
  return { deployment_id, process };
}
