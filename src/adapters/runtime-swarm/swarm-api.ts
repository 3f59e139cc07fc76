import type { DockerApi } from "../../kit/docker-api.ts";
import { labels } from "../../containers/settings.ts";
import type { SwarmContext } from "./settings.ts";

/** The fields of a swarm's objects that Berth reads, named as in the Engine API. */
export interface SwarmAttempt {
  readonly ID: string;
  readonly CreatedAt: string;
  readonly Version: { readonly Index: number };
  readonly Spec: {
    readonly Name: string;
    readonly Labels: Readonly<Record<string, string>>;
    readonly TaskTemplate: { readonly Placement?: { readonly Constraints?: readonly string[] } };
  };
}

export interface SwarmTask {
  readonly ID: string;
  readonly CreatedAt: string;
  readonly ServiceID: string;
  readonly NodeID?: string;
  readonly DesiredState: string;
  readonly Status: {
    readonly State: string;
    readonly Timestamp: string;
    readonly Err?: string;
    readonly ContainerStatus?: { readonly ContainerID?: string; readonly ExitCode?: number };
    readonly PortStatus?: { readonly Ports?: readonly { readonly PublishedPort: number }[] | null };
  };
}

export interface SwarmNode {
  readonly ID: string;
  readonly Version: { readonly Index: number };
  readonly Spec: {
    readonly Availability: "active" | "pause" | "drain";
    readonly Role: "worker" | "manager";
    readonly Labels?: Readonly<Record<string, string>>;
  };
  readonly Description: {
    readonly Hostname: string;
    readonly Resources: { readonly NanoCPUs?: number; readonly MemoryBytes?: number };
    readonly Engine: { readonly EngineVersion: string };
  };
  readonly Status: { readonly State: "unknown" | "down" | "ready" | "disconnected"; readonly Addr?: string };
  readonly ManagerStatus?: { readonly Addr: string; readonly Leader?: boolean; readonly Reachability?: string };
}

/** An engine that is stuck must not block the platform. */
const timeoutMs = 10_000;

/** Label of a service: the machine that Berth chose. */
export const machineLabel = "berth.machine";
/** Label of a service whose application Berth stopped: the time of that. */
export const endedLabel = "berth.ended";

export async function listAttempts({ managers, tag }: SwarmContext): Promise<readonly SwarmAttempt[]> {
  const filters = { label: [`${labels.runtime}=${tag}`, `${labels.role}=app`] };
  return managers.call({ path: "/services", query: { filters } });
}

export function listTasks(
  { managers }: Pick<SwarmContext, "managers">,
  service?: string,
): Promise<readonly SwarmTask[]> {
  const filters = service === undefined ? {} : { service: [service] };
  return managers.call({ path: "/tasks", query: { filters } });
}

export function listNodes({ managers }: Pick<SwarmContext, "managers">): Promise<readonly SwarmNode[]> {
  return managers.call({ path: "/nodes" });
}

/** Returns whether the managers report the machine as down; after a change of leaders, whether the new one does not reach it. */
export function isDown({ Status: { State: state }, ManagerStatus: manager }: SwarmNode): boolean {
  return state === "down" || (state === "unknown" && manager?.Reachability === "unreachable");
}

/** Returns whether the machine is down or the managers no longer know its id. */
export async function isLost(context: Pick<SwarmContext, "managers">, machine: string | undefined): Promise<boolean> {
  if (machine === undefined) return false;
  const node = (await listNodes(context)).find(({ ID }) => ID === machine);
  return node === undefined || isDown(node);
}

/** Returns a machine's address. A manager may report none for its tasks; then its address for other managers is used. */
export function addressOf({ Status: status, ManagerStatus: manager }: SwarmNode): string {
  const own = status.Addr ?? "";
  return own === "" || own === "0.0.0.0" || own === "127.0.0.1" ? (manager?.Addr.replace(/:\d+$/, "") ?? own) : own;
}

/** Reads this machine's node id, address and role in its swarm. */
export async function readMembership(api: DockerApi) {
  const { Swarm: swarm } = await api.call<{
    readonly Swarm: { readonly NodeID: string; readonly NodeAddr: string; readonly ControlAvailable: boolean };
  }>({ path: "/info", timeoutMs });
  return {
    /** Node id of this engine; empty when it is in no swarm. */
    nodeId: swarm.NodeID,
    address: swarm.NodeAddr,
    isManager: swarm.ControlAvailable,
  };
}

interface Swarm {
  readonly Version: { readonly Index: number };
  readonly Spec: { readonly Dispatcher?: { readonly HeartbeatPeriod?: number } };
}

const heartbeatNs = 1e9;

/** Shortens the heartbeat, so that managers detect a lost machine after about 3 s instead of 15 s. */
export async function hastenHeartbeat(managers: DockerApi): Promise<void> {
  const { Version: version, Spec: spec } = await managers.call<Swarm>({ path: "/swarm" });
  if ((spec.Dispatcher?.HeartbeatPeriod ?? 0) === heartbeatNs) return;
  const body = { ...spec, Dispatcher: { ...spec.Dispatcher, HeartbeatPeriod: heartbeatNs } };
  await managers.call({ method: "POST", path: "/swarm/update", query: { version: version.Index }, body });
}
