import { readFileSync } from "node:fs";
import { closedNetworks, privateNetworks } from "./closed-networks.ts";

export interface VethRuleNames {
  readonly table: string;
  readonly interfacePrefix: string;
  /** The addresses of all sandboxes of this data folder. */
  readonly blockNetwork: string;
  /** Private networks that stay open. IPv6 is closed as a whole. */
  readonly tenantNetworks?: readonly string[];
  /** Services that sandboxes may reach although their address is blocked or belongs to this machine. */
  readonly open?: readonly OpenPort[];
  /** Ports of the edge at this machine's addresses, which applications may reach like any visitor. */
  readonly edgePorts?: readonly number[];
}

export interface OpenPort {
  readonly address: string;
  readonly port: number;
}

/** How many connections one sandbox may have open, and how many it may open per second; bursts may have four times as many. */
export interface ConnectionLimits {
  readonly connections: number;
  readonly newPerSecond: number;
}

/**
 * Returns the nft tables that guard sandboxes with a veth pair. Each table is declared and flushed first, so that loading it again replaces
 * it in one transaction. Packets are rejected rather than dropped, so that an application gets an error at once. Packets accepted here
 * still pass the host's other tables.
 */
export function vethRules(
  { table, interfacePrefix, blockNetwork, tenantNetworks = [], open = [], edgePorts = [] }: VethRuleNames,
  resolvers: readonly string[],
  { connections, newPerSecond }: ConnectionLimits,
): string {
  const ours = `"${interfacePrefix}*"`;
  const { names, admit, edge, opened } = openings(ours, { open, edgePorts, tenantNetworks }, resolvers);
  const refuse = "reject with icmpx type admin-prohibited";
  return `
table inet ${table}
flush table inet ${table}
table inet ${table} {
  set open_connections { type ifname; flags dynamic; size 4096; }
  set new_connections { type ifname; flags dynamic; size 4096; }
  chain limit_connections {
    ct state new add @new_connections { iifname limit rate over ${newPerSecond}/second burst ${4 * newPerSecond} packets } ${refuse}
    ct state new add @open_connections { iifname ct count over ${connections} } ${refuse}
  }
  chain to_host {
    type filter hook input priority filter - 5; policy accept;
    iifname ${ours} ct state established,related accept
    iifname ${ours} jump limit_connections
    ${names}
    ${admit}
    ${edge}
    iifname ${ours} reject
  }
  chain through_host {
    type filter hook forward priority filter - 5; policy accept;
    iifname ${ours} meta nfproto ipv6 reject
    iifname ${ours} jump limit_connections
    ${names}
    ${admit}
    iifname ${ours} ip daddr { ${["10.64.0.0/10", "10.128.0.0/10", ...closedNetworks].join(", ")} } reject
    ${opened}
    iifname ${ours} ip daddr { ${privateNetworks.join(", ")} } reject
    iifname != ${ours} oifname ${ours} ct state established,related accept
    oifname ${ours} reject
  }
  chain from_host {
    type filter hook output priority filter - 5; policy accept;
    oifname "lo" accept
    ip daddr ${blockNetwork} oifname != ${ours} reject
  }
}
table ip ${table}
flush table ip ${table}
table ip ${table} {
  chain to_world {
    type nat hook postrouting priority srcnat; policy accept;
    ip saddr ${blockNetwork} oifname != ${ours} masquerade
  }
}
`;
}

function openings(
  ours: string,
  { open, edgePorts, tenantNetworks }: Required<Pick<VethRuleNames, "open" | "edgePorts" | "tenantNetworks">>,
  resolvers: readonly string[],
) {
  // Allow DNS explicitly: a resolver may be an address of the host itself, or of a cloud's metadata service.
  const names =
    resolvers.length === 0
      ? ""
      : `iifname ${ours} ip daddr { ${resolvers.join(", ")} } meta l4proto { tcp, udp } th dport 53 accept`;
  const services = open.map(({ address, port }) => `${address} . ${port}`).join(", ");
  const admit = services === "" ? "" : `iifname ${ours} ip daddr . tcp dport { ${services} } accept`;
  const edge = edgePorts.length === 0 ? "" : `iifname ${ours} tcp dport { ${edgePorts.join(", ")} } accept`;
  // One rule each: networks of one set must not overlap.
  const opened = tenantNetworks
    .filter((network) => !network.includes(":"))
    .map((network) => `iifname ${ours} ip daddr ${network} accept`)
    .join("\n    ");
  return { names, admit, edge, opened };
}

/** Returns this machine's limits. All sandboxes share the kernel's connection table; once full, it refuses every connection. */
export function usualConnectionLimits(): ConnectionLimits {
  const size = readTableSize();
  return { connections: Math.min(16_384, Math.max(1024, Math.floor(size / 16))), newPerSecond: 500 };
}

function readTableSize(): number {
  try {
    return Number(readFileSync("/proc/sys/net/netfilter/nf_conntrack_max", "utf8"));
  } catch {
    // The first rule that needs the conntrack module loads it; this is its table size on a small machine.
    return 65_536;
  }
}
