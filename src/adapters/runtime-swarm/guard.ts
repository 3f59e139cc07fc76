import { existsSync } from "node:fs";
import { createHash } from "node:crypto";
import { run } from "../../kit/exec.ts";
import { until } from "../../kit/until.ts";
import { unlessStatus } from "../../kit/docker-api.ts";
import { closedNetworks, privateNetworks } from "../../sandbox/closed-networks.ts";
import type { OpenPort } from "../../sandbox/veth-rules.ts";
import { readResolvers } from "../../sandbox/resolvers.ts";
import { hardened, memoryFolderBytes } from "../../containers/container-bodies.ts";
import { labels } from "../../containers/settings.ts";
import { emptyImage } from "../../containers/image-trees.ts";
import { registeredImage } from "./image-registry.ts";
import { addressOf, listNodes, listTasks, type SwarmNode, type SwarmAttempt } from "./swarm-api.ts";
import { fileReference } from "./attempt-spec.ts";
import { swarmFile } from "./swarm-files.ts";
import type { SwarmContext } from "./settings.ts";

/**
 * A service with one task on every machine, including those that join later. It loads an nftables table that closes the machine itself, the
 * operator's private networks and metadata services to containers, and closes the ports of replicas to everything but edges. A machine
 * without it gets no replicas.
 */
export type Guard = ReturnType<typeof createGuard>;

const bridge = "docker_gwbridge";

export interface GuardedNetwork {
  readonly table: string;
  readonly resolvers: readonly string[];
  readonly machines: readonly string[];
  readonly edges: readonly string[];
  /** The edges' ports, which applications may reach on every machine, as visitors do. */
  readonly edgePorts: readonly number[];
  /** Services that applications may reach although the address is in a closed network, such as the server of projects' databases. */
  readonly open: readonly OpenPort[];
  readonly tenantNetworks?: readonly string[];
}

const set = (values: readonly (string | number)[]): string => `{ ${values.join(", ")} }`;

/** Builds the nftables rules, which what the engine's own tables accept must pass too. Rejects, so that applications fail at once. */
export function guardRules({
  table,
  resolvers,
  machines,
  edges,
  edgePorts,
  open,
  tenantNetworks = [],
}: GuardedNetwork): string {
  const from = `iifname "${bridge}"`;
  const names =
    resolvers.length > 0 ? `${from} ip daddr ${set(resolvers)} meta l4proto { tcp, udp } th dport 53 accept` : "";
  const services = open.map(({ address, port }) => `${address} . ${port}`);
  const admit = services.length > 0 ? `${from} ip daddr . tcp dport ${set(services)} accept` : "";
  const visit = edgePorts.length > 0 ? `${from} tcp dport ${set(edgePorts)}` : "";
  const ownEdge = visit === "" ? "" : `${visit} accept`;
  const otherEdges = visit === "" ? "" : `${visit} ip daddr ${set([...machines, ...edges])} accept`;
  const opened = tenantNetworks
    .filter((network) => !network.includes(":"))
    .map((network) => `${from} ip daddr ${network} accept`)
    .join("\n    ");
  // Unlike a TCP reset, this cannot be mistaken for a closed port.
  const refuse = "reject with icmpx type admin-prohibited";
  return `table inet ${table}
flush table inet ${table}
table inet ${table} {
  chain to_machine {
    type filter hook input priority filter - 5; policy accept;
    ${from} ct state established,related accept
    ${names}
    ${admit}
    ${ownEdge}
    ${from} ${refuse}
  }
  chain through_machine {
    type filter hook forward priority filter - 5; policy accept;
    ct state established,related accept
    ${names}
    ${admit}
    ${otherEdges}
    ${from} oifname "${bridge}" ${refuse}
    ${from} meta nfproto ipv6 ${refuse}
    ${from} ip daddr ${set([...machines, ...edges])} ${refuse}
    ${from} ip daddr ${set(["10.64.0.0/10", "10.128.0.0/10", ...closedNetworks])} ${refuse}
    ${opened}
    ${from} ip daddr ${set(privateNetworks)} ${refuse}
    iifname != "${bridge}" oifname "${bridge}" ip saddr != ${set([...machines, ...edges])} ${refuse}
  }
}
`;
}

// Loads the rules every 10 s, because a restart of the machine's own firewall may flush all tables.
const script = `trap 'nft delete table inet "$1"; exit 0' TERM
while nft -f /rules.nft; do touch /tmp/on; sleep 10 & wait; done
exit 1`;

export function createGuard(context: SwarmContext) {
  const { managers, tag, options } = context;
  const name = `berth-${tag}-guard`;
  let applied = "";
  const ensure = async (nodes: readonly SwarmNode[]) => {
    const rules = guardRules({
      table: `berth_swarm_${tag}`,
      resolvers: readResolvers().addresses,
      machines: nodes.map(addressOf).toSorted(),
      edges: context.edgeAddresses,
      edgePorts: options.edgePorts ?? [],
      open: options.open ?? [],
      tenantNetworks: options.tenantNetworks ?? [],
    });
    const mark = createHash("sha256").update(rules).digest("hex").slice(0, 16);
    if (applied === mark) return;
    const found = await unlessStatus(managers.call<SwarmAttempt>({ path: `/services/${name}` }), 404);
    if (found?.Spec.Labels["berth.rules"] !== mark) await put(found, await guardSpec(context, name, { rules, mark }));
    applied = mark;
  };
  const put = async (found: SwarmAttempt | undefined, body: object) => {
    const query = found === undefined ? {} : { version: found.Version.Index };
    const path = found === undefined ? "/services/create" : `/services/${found.ID}/update`;
    const headers = { "x-registry-auth": context.registry.authHeader };
    await unlessStatus(managers.call({ method: "POST", path, query, body, headers }), 409);
  };
  return {
    /** Returns the machines whose guard is healthy, so their table is loaded. */
    machines: () =>
      context.runExclusive("guard", async () => {
        await ensure(await listNodes(context));
        const tasks = await listTasks(context, name);
        const running = tasks.filter(({ Status: status }) => status.State === "running");
        return new Set(running.flatMap(({ NodeID }) => (NodeID === undefined ? [] : [NodeID])));
      }),
    /** Returns the id of the guard's container on a machine; undefined unless it runs. */
    async containerOn(machine: string) {
      const tasks = await listTasks(context, name);
      const here = tasks.find(({ NodeID, Status: status }) => NodeID === machine && status.State === "running");
      return here?.Status.ContainerStatus?.ContainerID;
    },
    async remove() {
      await unlessStatus(managers.call({ method: "DELETE", path: `/services/${name}` }), 404);
      const args = ["delete", "table", "inet", `berth_swarm_${tag}`];
      await until(async () => ((await run({ file: "nft", args })).exitCode !== 0 ? true : undefined), {
        timeoutMs: 10_000,
      });
    },
  };
}

/** Builds the guard's service: the host's programs with CAP_NET_ADMIN as their only capability. */
async function guardSpec(
  context: SwarmContext,
  name: string,
  { rules, mark }: { readonly rules: string; readonly mark: string },
): Promise<object> {
  const { tag } = context;
  const image = await registeredImage(context, { project_id: "guard", image_ref: await emptyImage(context) });
  const file = await swarmFile(context, { target: "/rules.nft", content: Buffer.from(rules) });
  // Leaves out /sbin, where the engine puts its init process.
  const folders = ["/usr", "/bin", "/lib", "/lib64"].filter((path) => existsSync(path));
  return {
    Name: name,
    Labels: { [labels.runtime]: tag, [labels.role]: "guard", "berth.rules": mark },
    TaskTemplate: {
      ContainerSpec: {
        Image: image,
        Command: ["/bin/sh", "-c", script, "sh", `berth_swarm_${tag}`],
        Env: ["PATH=/usr/sbin:/usr/bin:/sbin:/bin"],
        User: "0",
        Init: true,
        ReadOnly: hardened.ReadonlyRootfs,
        CapabilityDrop: hardened.CapDrop,
        CapabilityAdd: ["CAP_NET_ADMIN"],
        Healthcheck: { Test: ["CMD", "/bin/sh", "-c", "[ -e /tmp/on ]"], Interval: 1e9, Timeout: 5e9, Retries: 30 },
        Mounts: [
          ...folders.map((path) => ({ Type: "bind", Source: path, Target: path, ReadOnly: true })),
          { Type: "tmpfs", Target: "/tmp", TmpfsOptions: { SizeBytes: memoryFolderBytes, Mode: 0o1777 } },
        ],
        Configs: [fileReference(file)],
      },
      Resources: { Limits: { MemoryBytes: 64 * 1024 * 1024, Pids: 32 } },
      RestartPolicy: { Condition: "any", Delay: 1e9 },
      Networks: [{ Target: "host" }],
    },
    Mode: { Global: {} },
    UpdateConfig: { Parallelism: 0, Order: "start-first" },
    EndpointSpec: { Mode: "dnsrr" },
  };
}
