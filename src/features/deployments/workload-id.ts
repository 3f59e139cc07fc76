/** Returns the runtime's name for a process type of a deployment. */
export function workloadId({ deployment_id, process }: { deployment_id: string; process: string }): string {
  return process === web ? deployment_id : `${deployment_id}.${process}`;
}

/** The process type that receives requests. */
export const web = "web";

export function parseWorkloadId(id: string): { readonly deployment_id: string; readonly process: string } {
  const [deployment_id = "", process = web] = id.split(".");
  return { deployment_id, process };
}
