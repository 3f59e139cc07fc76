import { unlessStatus } from "../../kit/docker-api.ts";
import type { MachinePool, PooledMachine } from "../../ports/machines.ts";
import { labels } from "../../containers/settings.ts";
import type { Guard } from "./guard.ts";
import { addressOf, listAttempts, listNodes, machineLabel, readMembership, type SwarmNode } from "./swarm-api.ts";
import type { SwarmContext } from "./settings.ts";

export function createMachinePool(context: SwarmContext, guard: Guard): MachinePool {
  const { api, managers, registry } = context;
  const projectsOn = async (id: string) => {
    const here = (await listAttempts(context)).filter(({ Spec: spec }) => spec.Labels[machineLabel] === id);
    return [...new Set(here.flatMap(({ Spec: spec }) => spec.Labels[labels.project] ?? []))];
  };
  return {
    projectsOn,
    async list() {
      const [nodes, attempts, guarded] = await Promise.all([
        listNodes(context),
        listAttempts(context),
        guard.machines(),
      ]);
      const count = (id: string) => attempts.filter(({ Spec: spec }) => spec.Labels[machineLabel] === id).length;
      return nodes.map((node) => toMachine(node, guarded.has(node.ID), count(node.ID)));
    },
    async joinScript() {
      const { JoinTokens: tokens } = await managers.call<{ JoinTokens: { Worker: string } }>({ path: "/swarm" });
      const { address } = await readMembership(api);
      return `${await registry.trustScript()}docker swarm join --token ${tokens.Worker} ${address}:2377\n`;
    },
    async admit(id, takesReplicas) {
      const node = await unlessStatus(managers.call<SwarmNode>({ path: `/nodes/${encodeURIComponent(id)}` }), 404);
      if (node === undefined) return false;
      const body = { ...node.Spec, Availability: takesReplicas ? "active" : "pause" };
      const query = { version: node.Version.Index };
      await managers.call({ method: "POST", path: `/nodes/${node.ID}/update`, query, body });
      return true;
    },
    async remove(id) {
      const path = `/nodes/${encodeURIComponent(id)}`;
      await unlessStatus(managers.call({ method: "DELETE", path, query: { force: true } }), 404);
    },
  };
}

function toMachine(node: SwarmNode, guarded: boolean, replicas: number): PooledMachine {
  const { Resources: resources, Hostname: name, Engine: engine } = node.Description;
  return {
    ...{ id: node.ID, name, address: addressOf(node), role: node.Spec.Role, state: node.Status.State },
    ...{ takes_replicas: node.Spec.Availability === "active", guarded, replicas },
    cpus: (resources.NanoCPUs ?? 0) / 1e9,
    memory_bytes: resources.MemoryBytes ?? 0,
    version: engine.EngineVersion,
  };
}
