import { join } from "node:path";
import { closedNetworks, closedNetworks6, privateNetworks, privateNetworks6 } from "./closed-networks.ts";
import type { Leases } from "./leases.ts";
import type { NetworkDriver } from "./network.ts";
import { isFreePort } from "./shared-network.ts";

export interface PastaParts {
  readonly pasta: string;
  readonly setpriv: string | null;
  /** ip(8), used to block metadata services and private networks; null leaves them reachable. */
  readonly ip: string | null;
}

/**
 * Creates the driver for an ordinary user: a network namespace with egress and one port forwarded by pasta(1). The host's loopback is not
 * mapped (`--no-map-gw`), and no other port is forwarded. pasta outlives its parent, and its child outlives pasta, so setpriv(1), if
 * installed, makes each die with its parent.
 */
export function pastaNetwork(programs: PastaParts, ports: Leases, opened: OpenedPlaces): NetworkDriver {
  const diesWithParent = programs.setpriv === null ? [] : [programs.setpriv, "--pdeathsig", "KILL", "--"];
  return {
    mode: "pasta",
    closesMetadata: programs.ip !== null,
    async open(id, network) {
      const port = network.kind === "serve" ? await ports.claim(id, isFreePort) : null;
      const inside = network.kind === "serve" ? network.port : 0;
      return {
        prefix: [
          ...diesWithParent,
          programs.pasta,
          ...pastaArguments(port === null ? null : { host: port, inside }),
          "--",
          ...diesWithParent,
          ...ownProc,
          ...closePrivate(programs.ip, opened),
        ],
        isolate: false,
        ownLoopback: true,
        serve: port === null ? null : { port: inside, address: { host: "127.0.0.1", port } },
      };
    },
    async close(id) {
      for (const port of ports.held(id)) ports.release(port);
    },
    ids: () => ports.owners(),
    dismantle: async () => {},
  };
}

// pasta's child has its own pid namespace but sees the host's /proc, where bubblewrap would look up its own child by a pid of another process.
const ownProc = ["unshare", "--mount", "--propagation", "slave", "--mount-proc", "--"];

/** What stays reachable in private networks: services such as name servers, and the networks that the operator opens. */
interface OpenedPlaces {
  readonly open: readonly { readonly address: string; readonly port: number }[];
  readonly tenantNetworks: readonly string[];
}

/** Blocks metadata services and private networks while the namespace's root still runs. Metadata services stay closed in every case. */
function closePrivate(ip: string | null, { open, tenantNetworks }: OpenedPlaces): string[] {
  if (ip === null) return [];
  const isV6 = (network: string) => network.includes(":");
  const places = open.map(({ address, port }) => `${address} ${port}`);
  const closing = (metadata: readonly string[], opened: readonly string[], others: readonly string[]) => [
    ...metadata.map((network) => `${network} unreachable`),
    ...opened.map((network) => `${network} lookup main`),
    ...others.map((network) => `${network} unreachable`),
  ];
  const v4 = closing(
    closedNetworks,
    tenantNetworks.filter((each) => !isV6(each)),
    privateNetworks,
  );
  const v6 = closing(closedNetworks6, tenantNetworks.filter(isV6), privateNetworks6);
  return ["/bin/sh", script, ip, ...places, "--", ...v4, "--", ...v6, "--"];
}

const script = join(import.meta.dirname, "close.sh");

function pastaArguments(forward: { host: number; inside: number } | null): string[] {
  const inbound = forward ? `127.0.0.1/${forward.host}:${forward.inside}` : "none";
  return ["--config-net", "--quiet", "--no-map-gw", "-t", inbound, "-u", "none", "-T", "none", "-U", "none"];
}
