import { unlessStatus } from "../../kit/docker-api.ts";
import { until } from "../../kit/until.ts";
import { stopGraceMs } from "./attempt-spec.ts";
import type { SwarmContext } from "./settings.ts";
import { endedLabel, isLost, listTasks, type SwarmAttempt } from "./swarm-api.ts";
import type { SwarmReplica } from "./replicas.ts";

const spareMs = 20_000;

/**
 * SIGTERM, and SIGKILL after the grace that the service was made with. The service gets a task that no machine takes in the place of its
 * own: so the swarm ends the application and still tells how it ended, and its machine keeps the output.
 */
export async function endAttempt(context: SwarmContext, replica: SwarmReplica): Promise<void> {
  if (replica.exit !== null) return;
  const { api } = context;
  const current = await unlessStatus(api.call<FullAttempt>({ path: `/services/${replica.name}` }), 404);
  if (current === undefined) return;
  if (current.Spec.Labels[endedLabel] === undefined)
    await api.call({
      ...{ method: "POST", path: `/services/${current.ID}/update`, query: { version: current.Version.Index } },
      body: withoutMachine(current.Spec),
      headers: { "x-registry-auth": context.registry.authHeader },
    });
  const hasEnded = async () => {
    const task = (await listTasks(context, replica.name)).find(({ ID }) => ID === replica.task?.ID);
    if (task === undefined || !["starting", "running"].includes(task.Status.State)) return true;
    return (await isLost(context, task.NodeID)) || undefined;
  };
  // A machine that is lost says nothing more; its engine ends the task when it comes back.
  if (replica.node?.Status.State !== "ready") return;
  if (!(await until(hasEnded, { timeoutMs: stopGraceMs + spareMs, firstMs: 50, atMostMs: 250 })))
    throw new Error(`${replica.name} does not end`);
}

interface FullAttempt extends Omit<SwarmAttempt, "Spec"> {
  readonly Spec: SwarmAttempt["Spec"] & { readonly TaskTemplate: object };
}

function withoutMachine(spec: FullAttempt["Spec"]): object {
  return {
    ...spec,
    Labels: { ...spec.Labels, [endedLabel]: new Date().toISOString() },
    TaskTemplate: { ...spec.TaskTemplate, Placement: { Constraints: ["node.id==none"] } },
    UpdateConfig: { Parallelism: 0, Order: "stop-first", FailureAction: "continue" },
  };
}
