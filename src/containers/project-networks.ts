import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DockerRefused, unlessStatus } from "../kit/docker-api.ts";
import { run, runOk } from "../kit/exec.ts";
import { createKeyedMutex } from "../kit/keyed-mutex.ts";
import { forgetNetwork, isNoted, noteNetwork } from "../sandbox/abandoned-networks.ts";
import { claimAddresses } from "../sandbox/claim-addresses.ts";
import { readResolvers } from "../sandbox/resolvers.ts";
import { usualConnectionLimits, vethRules } from "../sandbox/veth-rules.ts";
import { labels, type DockerContext } from "./settings.ts";

/** One engine network with its own bridge for each project, all guarded by one nftables table of Berth's. */
export type ProjectNetworks = Awaited<ReturnType<typeof createProjectNetworks>>;

// 10.128.0.0/10 is divided into 64 blocks of /16, one per data folder, each with 1024 networks of /26.
const blockCount = 64;
const networksInBlock = 1024;
/** Notes that record which data folder's network exists on this machine; a reboot removes them. */
const notes = "/run/berth-docker-networks";

interface EngineNetwork {
  readonly Id: string;
  readonly Name: string;
  readonly IPAM: { readonly Config: readonly { readonly Subnet?: string }[] | null };
}

export async function createProjectNetworks(context: DockerContext) {
  const { api, tag, options } = context;
  const resolvers = readResolvers();
  const ours = () => {
    const filters = { label: [`${labels.runtime}=${tag}`] };
    return api.call<readonly EngineNetwork[]>({ path: "/networks", query: { filters } });
  };
  const block = await settleBlock(options.stateDir, tag, await ours());
  const blockNetwork = networkOf(block);
  noteNetwork({ tag, stateDir: options.stateDir, block: blockNetwork }, notes);
  const table = `berth_docker_${tag}`;
  const { edgePorts = [], open = [], tenantNetworks = [] } = options;
  const names = { table, interfacePrefix: `d${tag}-`, blockNetwork, tenantNetworks, edgePorts, open };
  const rules = vethRules(names, resolvers.addresses, usualConnectionLimits());
  const guard = async () => {
    writeFileSync("/proc/sys/net/ipv4/ip_forward", "1");
    await runOk({ file: "nft", args: ["-f", "-"] }, { stdin: rules, timeoutMs: 10_000 });
    const args = ["route", "replace", "unreachable", blockNetwork];
    await runOk({ file: "ip", args }, { timeoutMs: 10_000 });
  };
  const create = async (name: string, number: number) => {
    const used = new Set((await ours()).flatMap(subnetsOf));
    for (let step = 0; step < networksInBlock; step += 1) {
      const subnet = subnetOf(block, (number + step) % networksInBlock);
      if (used.has(subnet)) continue;
      const bridge = `${names.interfacePrefix}${number}`;
      if (await createNetwork(context, { name, subnet, bridge })) return;
    }
    throw new Error(`every part of ${blockNetwork} is in use`);
  };
  const runExclusive = createKeyedMutex();
  return {
    nameServers: resolvers.addresses,
    /** Creates the project's network if it is missing and returns its name. Also reloads the rules, since a firewall restart flushes them. */
    async open(projectNumber: number) {
      const name = `berth-${tag}-${projectNumber}`;
      await guard();
      await runExclusive("networks", async () => {
        if (!(await unlessStatus(api.call({ path: `/networks/${name}` }), 404))) await create(name, projectNumber);
      });
      return name;
    },
    async removeUnused() {
      // The engine refuses to delete networks in use.
      for (const { Id } of await ours())
        await unlessStatus(api.call({ method: "DELETE", path: `/networks/${Id}` }), 403, 404, 409, 500);
    },
    /** Removes the rules and the route. Call it when no container is left. */
    async dismantle() {
      for (const family of ["inet", "ip"])
        await run({ file: "nft", args: ["delete", "table", family, table] }, { timeoutMs: 10_000 });
      await run({ file: "ip", args: ["route", "del", "unreachable", blockNetwork] }, { timeoutMs: 10_000 });
      forgetNetwork(tag, notes);
    },
  };
}

interface WantedNetwork {
  readonly name: string;
  readonly subnet: string;
  readonly bridge: string;
}

/** Returns false if another network already uses the addresses. */
async function createNetwork({ api, tag }: DockerContext, { name, subnet, bridge }: WantedNetwork): Promise<boolean> {
  const body = {
    Name: name,
    CheckDuplicate: true,
    Driver: "bridge",
    EnableIPv6: false,
    IPAM: { Driver: "default", Config: [{ Subnet: subnet }] },
    Labels: { [labels.runtime]: tag },
    Options: {
      "com.docker.network.bridge.name": bridge,
      "com.docker.network.bridge.enable_icc": "false",
      // Berth's own nftables table does the masquerading, so that it also works when the engine leaves iptables alone.
      "com.docker.network.bridge.enable_ip_masquerade": "false",
    },
  };
  try {
    await api.call({ method: "POST", path: "/networks/create", body });
    return true;
  } catch (error) {
    if (error instanceof DockerRefused && /overlap/i.test(error.message)) return false;
    throw error;
  }
}

function subnetOf(block: number, index: number): string {
  return `10.${128 + block}.${index >> 2}.${(index & 3) * 64}/26`;
}

const subnetsOf = ({ IPAM }: EngineNetwork): (string | undefined)[] => (IPAM.Config ?? []).map(({ Subnet }) => Subnet);

/**
 * Returns this data folder's address block: the stored one while its network or one of its engine networks exists. Otherwise the first
 * block without a route on this machine, starting at the stored one or at a number derived from `tag`. While the platform is stopped,
 * another data folder may use the stored block.
 */
async function settleBlock(stateDir: string, tag: string, ours: readonly EngineNetwork[]): Promise<number> {
  const file = join(stateDir, "address-block");
  const stored = existsSync(file) ? Number(readFileSync(file, "utf8")) : undefined;
  if (stored !== undefined) {
    const holds = (subnet: string | undefined) => subnet?.startsWith(`10.${128 + stored}.`) === true;
    if (isNoted({ tag, block: networkOf(stored) }, notes) || ours.flatMap(subnetsOf).some(holds)) return stored;
  }
  const taken = routedBlocks();
  const start = stored ?? Number.parseInt(tag, 16) % blockCount;
  for (let step = 0; step < blockCount; step += 1) {
    const block = (start + step) % blockCount;
    if (taken.has(block) || !(await claimAddresses("ip", networkOf(block)))) continue;
    mkdirSync(stateDir, { recursive: true, mode: 0o711 });
    writeFileSync(file, String(block));
    return block;
  }
  throw new Error("every part of 10.128.0.0/10 is already routed on this machine");
}

const networkOf = (block: number): string => `10.${128 + block}.0.0/16`;

/** Returns the second octets, minus 128, of routes in 10.0.0.0/8. /proc/net/route prints hexadecimal, least significant byte first. */
function routedBlocks(): Set<number> {
  const lines = readFileSync("/proc/net/route", "utf8").split("\n").slice(1);
  const destinations = lines.map((line) => Buffer.from((line.split("\t")[1] ?? "").padStart(8, "0"), "hex"));
  return new Set(destinations.flatMap(([, , second = 0, first]) => (first === 10 ? [second - 128] : [])));
}
