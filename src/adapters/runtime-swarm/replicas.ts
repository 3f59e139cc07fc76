import { connect } from "node:net";
import type { Instance, InstanceExit } from "../../ports/runtime.ts";
import { labels } from "../../containers/container-labels.ts";
import {
  addressOf,
  endedLabel,
  listNodes,
  listAttempts,
  listTasks,
  type SwarmNode,
  type SwarmAttempt,
  type SwarmTask,
} from "./swarm-api.ts";
import type { SwarmContext } from "./settings.ts";

/** One attempt of a replica: a service with its one task, on a machine. */
export interface SwarmReplica {
  readonly name: string;
  readonly service: SwarmAttempt;
  /** Undefined before a machine was given one. */
  readonly task: SwarmTask | undefined;
  readonly node: SwarmNode | undefined;
  readonly address: Instance["address"];
  /** Null while it runs. */
  readonly exit: InstanceExit | null;
}

const beforeStart = new Set(["new", "allocated", "pending", "assigned", "accepted", "preparing", "ready"]);
const living = new Set(["starting", "running"]);

/** All replicas of this data folder, also those that wait for a machine. `lost` remembers what has been given up. */
export async function readReplicas(
  context: SwarmContext,
  lost: Map<string, InstanceExit>,
): Promise<readonly SwarmReplica[]> {
  const services = await listAttempts(context);
  if (services.length === 0) return [];
  const [tasks, nodes] = await Promise.all([listTasks(context), listNodes(context)]);
  const ofService = Map.groupBy(tasks, ({ ServiceID }) => ServiceID);
  const machines = new Map(nodes.map((node) => [node.ID, node]));
  const isCutOff = looksCutOff(nodes);
  const replicas = services.map((service) => toReplica(service, ofService.get(service.ID) ?? [], machines));
  return Promise.all(replicas.map((replica) => giveUpLost(replica, { lost, isCutOff })));
}

export const hasStarted = ({ task }: Pick<SwarmReplica, "task">): boolean =>
  task !== undefined && !beforeStart.has(task.Status.State) && task.Status.State !== "rejected";

export const keyOf = ({ service: { Spec: spec } }: Pick<SwarmReplica, "service">) => ({
  workload_id: spec.Labels[labels.workload] ?? "",
  ordinal: Number(spec.Labels[labels.ordinal]),
  attempt: Number(spec.Labels[labels.attempt]),
});

/** The first task is the application; a service that was ended gets another one, which no machine takes. */
function toReplica(
  service: SwarmAttempt,
  tasks: readonly SwarmTask[],
  nodes: ReadonlyMap<string, SwarmNode>,
): SwarmReplica {
  const [task] = tasks.toSorted((one, other) => one.CreatedAt.localeCompare(other.CreatedAt));
  const node = task?.NodeID === undefined ? undefined : nodes.get(task.NodeID);
  const exit = task === undefined || isLiving(task) ? null : exitOf(service, task);
  const port = task?.Status.PortStatus?.Ports?.[0]?.PublishedPort;
  const address = node === undefined || port === undefined || exit !== null ? null : { host: addressOf(node), port };
  return { name: service.Spec.Name, service, task, node, address, exit };
}

const isLiving = ({ Status: { State: state } }: SwarmTask): boolean => beforeStart.has(state) || living.has(state);

/** A swarm does not say that the kernel ended a task for its memory; SIGKILL that Berth did not ask for is taken for that. */
function exitOf({ Spec: spec }: SwarmAttempt, { Status: status }: SwarmTask): InstanceExit {
  const code = status.ContainerStatus?.ExitCode ?? null;
  const wasAsked = spec.Labels[endedLabel] !== undefined;
  return { code, out_of_memory: code === 137 && !wasAsked, at: new Date(status.Timestamp) };
}

/** When most machines are lost at the same moment, it is this one that is: then nothing that runs is given up. */
function looksCutOff(nodes: readonly SwarmNode[]): boolean {
  return nodes.filter((node) => node.Status.State === "down").length * 2 > nodes.length;
}

/**
 * A replica on a machine that is down, or was removed, has ended, unless it still answers: an engine that ended leaves its containers
 * running. A machine whose state is unknown (managers elect a leader) is not down. What was given up once stays so.
 */
async function giveUpLost(
  replica: SwarmReplica,
  { lost, isCutOff }: { readonly lost: Map<string, InstanceExit>; readonly isCutOff: boolean },
): Promise<SwarmReplica> {
  if (replica.exit !== null || !hasStarted(replica)) return replica;
  const known = lost.get(replica.name);
  if (known !== undefined) return { ...replica, address: null, exit: known };
  const isGone = replica.node === undefined || replica.node.Status.State === "down";
  if (!isGone || isCutOff || (replica.address !== null && (await answers(replica.address)))) return replica;
  const exit = { code: null, out_of_memory: false, machine_lost: true, at: new Date() } as const;
  lost.set(replica.name, exit);
  return { ...replica, address: null, exit };
}

const dialMs = 1000;

function answers({ host, port }: { readonly host: string; readonly port: number }): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host, port, timeout: dialMs });
    const end = (isOpen: boolean) => {
      socket.destroy();
      resolve(isOpen);
    };
    socket.once("connect", () => end(true));
    socket.once("error", () => end(false));
    socket.once("timeout", () => end(false));
  });
}

/** Of each replica the newest attempt. */
export function newestOf(replicas: readonly SwarmReplica[]): readonly SwarmReplica[] {
  const newest = new Map<string, SwarmReplica>();
  for (const replica of replicas) {
    const { workload_id, ordinal, attempt } = keyOf(replica);
    const known = newest.get(`${workload_id}/${ordinal}`);
    if (!known || keyOf(known).attempt < attempt) newest.set(`${workload_id}/${ordinal}`, replica);
  }
  return [...newest.values()];
}

export function toInstance(replica: SwarmReplica, outputMark: string): Instance {
  const { Labels: own } = replica.service.Spec;
  return {
    ...keyOf(replica),
    project_id: own[labels.project] ?? "",
    image_ref: own[labels.image] ?? "",
    state: replica.exit === null ? "running" : "exited",
    address: replica.exit === null ? replica.address : null,
    started_at: new Date(own[labels.started] ?? 0),
    output_mark: outputMark,
    exit: replica.exit,
  };
}
