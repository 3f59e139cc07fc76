import { machineLabel, type SwarmNode, type SwarmAttempt } from "./swarm-api.ts";
import { labels } from "../../containers/container-labels.ts";

interface Surroundings {
  readonly services: readonly SwarmAttempt[];
  readonly guarded: ReadonlySet<string>;
  /** The machine that refused this replica. */
  readonly without?: string | null;
}

/**
 * Chooses the machine for another replica of a workload: among ready, active and guarded machines, the one with the fewest replicas of it,
 * then with the fewest of all. A machine that refused this replica (`without`) comes last. Throws if there is none. The rules on `guarded`
 * machines close the operator's networks to containers.
 */
export function chooseMachine(
  workloadId: string,
  nodes: readonly SwarmNode[],
  { services, guarded, without = null }: Surroundings,
): string {
  const fit = nodes.filter(
    ({ ID, Spec: spec, Status: status }) =>
      status.State === "ready" && spec.Availability === "active" && guarded.has(ID),
  );
  const load = (id: string) => {
    const here = services.filter(({ Spec: spec }) => spec.Labels[machineLabel] === id);
    return [here.filter(({ Spec: spec }) => spec.Labels[labels.workload] === workloadId).length, here.length] as const;
  };
  const [best] = fit
    .map(({ ID: id }) => ({ id, load: load(id) }))
    .toSorted(
      (one, other) =>
        Number(one.id === without) - Number(other.id === without) ||
        one.load[0] - other.load[0] ||
        one.load[1] - other.load[1],
    );
  if (best === undefined)
    throw new Error(
      `none of the swarm's ${nodes.length} machines takes replicas: each is down, drained or not guarded`,
    );
  return best.id;
}
