import { unlessStatus } from "../../kit/docker-api.ts";
import { until } from "../../kit/until.ts";
import { stopGraceMs } from "./attempt-spec.ts";
import type { SwarmContext } from "./settings.ts";
import { endedLabel, isLost, listTasks, type SwarmAttempt } from "./swarm-api.ts";
import type { SwarmReplica } from "./replicas.ts";

const spareMs = 20_000;

/**
 * Stops an attempt with SIGTERM, then SIGKILL after the service's grace period. Updates the service with a task that fits no machine: the
 * swarm then stops the application but still reports its exit, and the machine keeps its output.
 */
export async function endAttempt(context: SwarmContext, replica: SwarmReplica): Promise<void> {
  if (replica.exit !== null) return;
  const { managers } = context;
  const current = await unlessStatus(managers.call<FullAttempt>({ path: `/services/${replica.name}` }), 404);
  if (current === undefined) return;
  if (current.Spec.Labels[endedLabel] === undefined)
    await managers.call({
      ...{ method: "POST", path: `/services/${current.ID}/update`, query: { version: current.Version.Index } },
      body: withoutMachine(current.Spec),
      headers: { "x-registry-auth": context.registry.authHeader },
    });
  const hasEnded = async () => {
    const task = (await listTasks(context, replica.name)).find(({ ID }) => ID === replica.task?.ID);
    if (task === undefined || !["starting", "running"].includes(task.Status.State)) return true;
    return (await isLost(context, task.NodeID)) || undefined;
  };
  // A lost machine reports nothing more; its engine stops the task when it returns.
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
