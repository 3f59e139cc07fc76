import { createHash } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { run, runOk } from "../kit/exec.ts";
import { claimAddresses } from "./claim-addresses.ts";
import { abandonedNetworks, forgetNetwork, isNoted, noteNetwork, spacesOf } from "./abandoned-networks.ts";
import { openLeases, type Leases } from "./leases.ts";
import type { NetworkDriver } from "./network.ts";
import { usualConnectionLimits, vethRules, type ConnectionLimits, type OpenPort } from "./veth-rules.ts";

export interface VethParts {
  readonly ip: string;
  readonly nft: string;
  /** Services that sandboxes may reach although their address is blocked or belongs to this machine. */
  readonly open?: readonly OpenPort[];
  /** See `VethRuleNames`. */
  readonly edgePorts?: readonly number[];
  readonly tenantNetworks?: readonly string[];
}

export interface VethNetwork extends NetworkDriver {
  /** The addresses of all sandboxes in CIDR notation, such as `10.64.16.0/20`. */
  readonly block: string;
  /** The number of that range, 0 to 1023: no other data folder of this machine has it. */
  readonly blockNumber: number;
  /** Prefix of every host-side interface. */
  readonly interfacePrefix: string;
  hostAddress(id: string): string | undefined;
}

/**
 * Creates one network namespace per sandbox, joined to the host by a veth pair with its own /30; needs root. Egress is masqueraded; an nft
 * table of Berth's own rejects packets to the host, other sandboxes and cloud metadata services. An unreachable route covers the whole
 * block, so packets for an ended sandbox can't leave by another device. Also removes the networks of deleted data folders. Throws if the
 * machine refuses any step.
 */
export async function openVethNetwork(
  parts: VethParts,
  stateDir: string,
  resolvers: readonly string[],
  limits: ConnectionLimits = usualConnectionLimits(),
): Promise<VethNetwork> {
  const tag = createHash("sha256").update(stateDir).digest("hex").slice(0, 8);
  const block = await settleBlock(parts.ip, stateDir, tag);
  const blockNetwork = networkOf(block);
  const names: Names = { tag, block, blockNetwork, interfacePrefix: `b${tag}-`, table: `berth_${tag}` };
  const { open = [], edgePorts = [], tenantNetworks = [] } = parts;
  const rules = vethRules({ ...names, open, edgePorts, tenantNetworks }, resolvers, limits);
  noteNetwork({ tag, stateDir, block: blockNetwork });
  for (const left of await abandonedNetworks(parts.ip)) await dismantle(parts, left);
  // Runs for every new sandbox: a restart of the machine's firewall may have flushed all tables.
  const guard = async () => {
    writeFileSync("/proc/sys/net/ipv4/ip_forward", "1");
    await runOk({ file: parts.nft, args: ["-f", "-"] }, { stdin: rules, timeoutMs: 10_000 });
  };
  await runOk({ file: parts.ip, args: ["route", "replace", "unreachable", blockNetwork] }, { timeoutMs: 10_000 });
  await guard();
  return driver(parts, names, openLeases(join(stateDir, "subnets"), 0, subnetsInBlock), guard);
}

interface Names {
  readonly tag: string;
  readonly block: number;
  /** Its addresses in CIDR notation, such as `10.64.16.0/20`. */
  readonly blockNetwork: string;
  readonly interfacePrefix: string;
  readonly table: string;
}

// 10.64.0.0/10 is divided into 1024 blocks of /20, one per data folder, each with 1024 subnets of /30.
const firstBlockAddress = 0x0a_40_00_00;
const blockCount = 1024;
const blockSize = 4096;
const subnetsInBlock = 1024;

function driver(parts: VethParts, names: Names, leases: Leases, guard: () => Promise<void>): VethNetwork {
  const destroy = async (subnet: number) => {
    const [link, space] = [linkName(names, subnet), spaceName(names, subnet)];
    // Check first: a new sandbox's subnet is nearly always unused, and two `ip` calls that find nothing would take longer than everything else.
    if (interfaces().includes(link)) await run({ file: parts.ip, args: ["link", "del", link] }, { timeoutMs: 10_000 });
    if (existsSync(`/run/netns/${space}`))
      await run({ file: parts.ip, args: ["netns", "del", space] }, { timeoutMs: 10_000 });
  };
  const raise = async (id: string) => {
    const subnet = await leases.claim(
      id,
      async (number) => !routes().some((route) => route.hasDevice && covers(route, subnetStart(names, number))),
    );
    await destroy(subnet);
    const made = await Promise.allSettled([guard(), create(parts.ip, names, subnet)]);
    for (const each of made) if (each.status === "rejected") throw each.reason;
    return subnet;
  };
  // A sandbox that is opened again before it is closed reuses its network.
  const standing = new Map<string, Promise<number>>();
  const stand = (id: string) => {
    const subnet = standing.get(id) ?? raise(id);
    standing.set(id, subnet);
    subnet.catch(() => standing.delete(id));
    return subnet;
  };
  return {
    mode: "veth",
    closesMetadata: true,
    block: names.blockNetwork,
    blockNumber: names.block,
    interfacePrefix: names.interfacePrefix,
    hostAddress: (id) => leases.held(id).map((subnet) => addresses(names, subnet).host)[0],
    async open(id, network) {
      const subnet = await stand(id);
      const port = network.kind === "serve" ? network.port : null;
      const host = addresses(names, subnet).sandbox;
      return {
        // Not `ip netns exec`, which mounts another /sys without the control groups. nsenter comes with setpriv (util-linux).
        prefix: ["nsenter", `--net=/run/netns/${spaceName(names, subnet)}`, "--"],
        isolate: false,
        ownLoopback: true,
        serve: port === null ? null : { port, address: { host, port } },
      };
    },
    async close(id) {
      await standing.get(id)?.catch(() => {});
      standing.delete(id);
      for (const subnet of leases.held(id)) {
        await destroy(subnet);
        leases.release(subnet);
      }
    },
    ids: () => leases.owners(),
    dismantle: () => dismantle(parts, { tag: names.tag, block: names.blockNetwork }),
  };
}

async function dismantle({ ip, nft }: VethParts, { tag, block }: { tag: string; block: string }): Promise<void> {
  const quietly = (file: string, ...args: string[]) => run({ file, args }, { timeoutMs: 10_000 });
  for (const link of interfaces().filter((name) => name.startsWith(`b${tag}-`))) await quietly(ip, "link", "del", link);
  for (const space of spacesOf(tag)) await quietly(ip, "netns", "del", space);
  for (const family of ["inet", "ip"]) await quietly(nft, "delete", "table", family, `berth_${tag}`);
  await quietly(ip, "route", "del", "unreachable", block);
  forgetNetwork(tag);
}

async function create(ip: string, names: Names, subnet: number): Promise<void> {
  const { host, sandbox } = addresses(names, subnet);
  const words = [ip, spaceName(names, subnet), linkName(names, subnet), host, sandbox, names.blockNetwork];
  await runOk({ file: "/bin/sh", args: [script, ...words] }, { timeoutMs: 20_000 });
}

const script = join(import.meta.dirname, "veth.sh");

const linkName = (names: Names, subnet: number): string => `${names.interfacePrefix}${subnet}`;
const spaceName = (names: Names, subnet: number): string => `berth-${names.tag}-${subnet}`;

const subnetStart = (names: Names, subnet: number): number => firstBlockAddress + names.block * blockSize + subnet * 4;

function addresses(names: Names, subnet: number) {
  const start = subnetStart(names, subnet);
  return { host: numberToIp(start + 1), sandbox: numberToIp(start + 2) };
}

/**
 * Returns this data folder's block: the stored one while its network stands, else the first that no route or address of this machine
 * overlaps, counting from the stored one or from a start that the tag determines. While the platform is stopped, another data folder may
 * take the stored block.
 */
async function settleBlock(ip: string, stateDir: string, tag: string): Promise<number> {
  const file = join(stateDir, "address-block");
  const stored = existsSync(file) ? Number(readFileSync(file, "utf8")) : undefined;
  if (stored !== undefined && isNoted({ tag, block: networkOf(stored) })) return stored;
  const taken = usedBlocks();
  const start = stored ?? Number.parseInt(tag, 16) % blockCount;
  for (let step = 0; step < blockCount; step += 1) {
    const block = (start + step) % blockCount;
    if (taken.has(block) || !(await claimAddresses(ip, networkOf(block)))) continue;
    writeFileSync(file, String(block));
    return block;
  }
  throw new Error("every part of 10.64.0.0/10 is already routed on this machine");
}

const networkOf = (block: number): string => `${numberToIp(firstBlockAddress + block * blockSize)}/20`;

function usedBlocks(): Set<number> {
  const used = new Set<number>();
  for (const { first, last } of routes()) {
    for (let block = 0; block < blockCount; block += 1) {
      const address = firstBlockAddress + block * blockSize;
      if (address <= last && address + blockSize > first) used.add(block);
    }
  }
  return used;
}

/** Reads the names of interfaces from /proc/net/dev (proc(5)): one line each, after two header lines. */
function interfaces(): string[] {
  const lines = readFileSync("/proc/net/dev", "utf8").split("\n").slice(2);
  return lines.map((line) => line.slice(0, Math.max(0, line.indexOf(":"))).trim());
}

interface Route {
  readonly first: number;
  readonly last: number;
  readonly hasDevice: boolean;
}

const covers = ({ first, last }: Route, address: number): boolean => first <= address && address <= last;

/**
 * Reads the IPv4 routes of this machine. /proc/net/route has destination and mask in hexadecimal, least significant byte first. Routes of
 * /10 or wider are skipped: they lead to a gateway, and Berth's narrower ones win over them. The unreachable route of a block has no
 * device: it marks the block as used, but not its subnets.
 */
function routes(): Route[] {
  const lines = readFileSync("/proc/net/route", "utf8").split("\n").slice(1);
  return lines.flatMap((line) => {
    const fields = line.split("\t");
    const [first, mask] = [hexToNumber(fields[1]), hexToNumber(fields[7])];
    const last = first + (2 ** 32 - 1 - mask);
    const isWide = last - first >= blockCount * blockSize - 1;
    return line === "" || isWide ? [] : [{ first, last, hasDevice: fields[0] !== "*" }];
  });
}

function hexToNumber(text = "0"): number {
  return Buffer.from(text.padStart(8, "0"), "hex").readUInt32LE(0);
}

function numberToIp(value: number): string {
  return [24, 16, 8, 0].map((shift) => (value >>> shift) & 255).join(".");
}
