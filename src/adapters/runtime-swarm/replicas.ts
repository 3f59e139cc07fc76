import { connect } from "node:net";
import type { DockerApi } from "../../kit/docker-api.ts";
import type { Instance, InstanceExit } from "../../ports/runtime.ts";
import { labels } from "../../containers/settings.ts";
import type { ContainerDetails } from "../../containers/containers.ts";
import * as swarmApi from "./swarm-api.ts";
import type { SwarmContext } from "./settings.ts";

/** One attempt of a replica: a service and its only task. */
export interface SwarmReplica {
  readonly name: string;
  readonly service: swarmApi.SwarmAttempt;
  /** Undefined until the swarm has created it. */
  readonly task: swarmApi.SwarmTask | undefined;
  readonly node: swarmApi.SwarmNode | undefined;
  readonly address: Instance["address"];
  /** Null while it runs. */
  readonly exit: InstanceExit | null;
}

const beforeStart = new Set(["new", "allocated", "pending", "assigned", "accepted", "preparing", "ready"]);
const living = new Set(["starting", "running"]);

/** What earlier reads found and managers no longer report. */
export interface ReplicaMemory {
  /** Exits of the replicas that were given up, by their service's name. */
  readonly lost: Map<string, InstanceExit>;
  /** Published ports by task id. Machines that report to a new leader omit them for tasks that already run. */
  readonly ports: Map<string, number>;
  /** Whether memory ran out, by the id of a task that SIGKILL ended. */
  readonly killed: Map<string, boolean>;
}

/** Returns all replicas of this data folder, including those that wait for a machine. */
export async function readReplicas(context: SwarmContext, memory: ReplicaMemory): Promise<readonly SwarmReplica[]> {
  const services = await swarmApi.listAttempts(context);
  if (services.length === 0) return [];
  const [tasks, nodes] = await Promise.all([swarmApi.listTasks(context), swarmApi.listNodes(context)]);
  const { lost } = memory;
  rememberPorts(tasks, memory.ports);
  forgetOthers(memory.killed, tasks);
  const ofService = Map.groupBy(tasks, ({ ServiceID }) => ServiceID);
  const machines = new Map(nodes.map((node) => [node.ID, node]));
  const isCutOff = looksCutOff(nodes);
  const replicas = services.map((service) =>
    toReplica(service, ofService.get(service.ID) ?? [], { machines, ports: memory.ports }),
  );
  return Promise.all(
    replicas.map(async (replica) => giveUpLost(await explainKill(context, memory, replica), { lost, isCutOff })),
  );
}

export const emptyMemory = (): ReplicaMemory => ({ lost: new Map(), ports: new Map(), killed: new Map() });

export const hasStarted = ({ task }: Pick<SwarmReplica, "task">): boolean =>
  task !== undefined && !beforeStart.has(task.Status.State) && task.Status.State !== "rejected";

export const keyOf = ({ service: { Spec: spec } }: Pick<SwarmReplica, "service">) => ({
  workload_id: spec.Labels[labels.workload] ?? "",
  ordinal: Number(spec.Labels[labels.ordinal]),
  attempt: Number(spec.Labels[labels.attempt]),
});

function forgetOthers(known: Map<string, unknown>, tasks: readonly swarmApi.SwarmTask[]): void {
  const listed = new Set(tasks.map(({ ID }) => ID));
  for (const id of known.keys()) if (!listed.has(id)) known.delete(id);
}

function rememberPorts(tasks: readonly swarmApi.SwarmTask[], ports: Map<string, number>): void {
  forgetOthers(ports, tasks);
  for (const { ID: id, Status: status } of tasks) {
    const port = status.PortStatus?.Ports?.[0]?.PublishedPort;
    if (port !== undefined) ports.set(id, port);
  }
}

/** The first task is the application; stopping a service adds a second task, which fits no machine. */
function toReplica(
  service: swarmApi.SwarmAttempt,
  tasks: readonly swarmApi.SwarmTask[],
  {
    machines,
    ports,
  }: { readonly machines: ReadonlyMap<string, swarmApi.SwarmNode>; readonly ports: ReadonlyMap<string, number> },
): SwarmReplica {
  const [task] = tasks.toSorted((one, other) => one.CreatedAt.localeCompare(other.CreatedAt));
  const node = task?.NodeID === undefined ? undefined : machines.get(task.NodeID);
  const exit = task === undefined || isLiving(task) ? null : exitOf(task);
  const port = task === undefined ? undefined : ports.get(task.ID);
  const address =
    node === undefined || port === undefined || exit !== null ? null : { host: swarmApi.addressOf(node), port };
  return { name: service.Spec.Name, service, task, node, address, exit };
}

const isLiving = ({ Status: { State: state } }: swarmApi.SwarmTask): boolean =>
  beforeStart.has(state) || living.has(state);

function exitOf({ Status: status }: swarmApi.SwarmTask): InstanceExit {
  const code = status.ContainerStatus?.ExitCode ?? null;
  return { code, out_of_memory: false, at: new Date(status.Timestamp) };
}

const killedCode = 137;
const inspectMs = 2000;

/**
 * Completes the exit of a task that SIGKILL ended. A swarm does not report the reason; only the engine of the task's machine knows whether
 * memory ran out. If Berth cannot reach that engine, the exit does not count as out of memory.
 */
async function explainKill(
  { engines }: Pick<SwarmContext, "engines">,
  { killed }: Pick<ReplicaMemory, "killed">,
  replica: SwarmReplica,
): Promise<SwarmReplica> {
  const { exit, task, service } = replica;
  const container = task?.Status.ContainerStatus?.ContainerID;
  const wasAsked = service.Spec.Labels[swarmApi.endedLabel] !== undefined;
  if (exit?.code !== killedCode || wasAsked || task === undefined || container === undefined) return replica;
  const call = { path: `/containers/${container}/json`, timeoutMs: inspectMs };
  const inspect = (engine: DockerApi) =>
    engine.call<ContainerDetails>(call).then(
      ({ State: state }) => state.OOMKilled,
      () => false,
    );
  const out_of_memory = killed.get(task.ID) ?? (await Promise.all(engines.map(inspect))).includes(true);
  killed.set(task.ID, out_of_memory);
  return { ...replica, exit: { ...exit, out_of_memory } };
}

/** Returns whether this machine seems to be cut off: most machines appear to be down. Running replicas are not given up then. */
function looksCutOff(nodes: readonly swarmApi.SwarmNode[]): boolean {
  return nodes.filter(swarmApi.isDown).length * 2 > nodes.length;
}

/** Marks a replica as exited if its machine is down or gone, unless it still accepts connections. One given up stays so. */
async function giveUpLost(
  replica: SwarmReplica,
  { lost, isCutOff }: { readonly lost: Map<string, InstanceExit>; readonly isCutOff: boolean },
): Promise<SwarmReplica> {
  if (replica.exit !== null || !hasStarted(replica)) return replica;
  const known = lost.get(replica.name);
  if (known !== undefined) return { ...replica, address: null, exit: known };
  const isGone = replica.node === undefined || swarmApi.isDown(replica.node);
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
