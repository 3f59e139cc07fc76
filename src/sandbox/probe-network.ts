import { accessSync, constants, existsSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { run, runOk, start, startDetached, systemPath, type Command } from "../kit/exec.ts";
import { until } from "../kit/until.ts";
import { admitThroughDocker, dismissFromDocker, uplinks } from "./docker-firewall.ts";
import { openLeases, type Leases } from "./leases.ts";
import type { NetworkDriver } from "./network.ts";
import { pastaNetwork } from "./pasta-network.ts";
import type { Resolvers } from "./resolvers.ts";
import { sharedNetwork } from "./shared-network.ts";
import type { SandboxOptions } from "./spec.ts";
import { openVethNetwork, type VethNetwork } from "./veth-network.ts";

export type NetworkFindings = Awaited<ReturnType<typeof probeNetwork>>;

// Outside 32768-60999, the kernel's range of local ports for outgoing connections.
const firstPort = 20_000;
const portCount = 10_000;

/** Finds the strongest network that the options allow and that works on this machine: veth for root, pasta for other users, else the host's own. */
export async function probeNetwork(options: SandboxOptions, resolvers: Resolvers) {
  const folder = join(options.stateDir, "network");
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const ports = openLeases(join(folder, "ports"), firstPort, portCount);
  const wanted = options.network ?? "auto";
  const guessedResolvers = resolvers.guessed;
  const reasons: string[] = [];
  const attempt = async (make: () => Promise<NetworkDriver>) => {
    try {
      return await make();
    } catch (fault) {
      reasons.push(fault instanceof Error ? fault.message : String(fault));
      return undefined;
    }
  };
  const isRoot = process.geteuid?.() === 0;
  const veth =
    wanted === "veth" || (wanted === "auto" && isRoot)
      ? await attempt(() => tryVeth(options, folder, resolvers))
      : undefined;
  const tryPastaWith = (ip: string | null) =>
    attempt(() => tryPasta(options, folder, pastaOn(options, ports, resolvers, ip)));
  const wantsPasta = wanted === "pasta" || (wanted === "auto" && !isRoot);
  // A pasta network that leaves metadata services reachable is better than no isolation.
  const pasta = wantsPasta ? ((await tryPastaWith(options.parts.ip)) ?? (await tryPastaWith(null))) : undefined;
  return {
    driver: veth ?? pasta ?? sharedNetwork(ports),
    /** Why no stronger network is used; empty if there is none or the settings ask for this one. */
    reason: [...new Set(reasons)].join("; "),
    guessedResolvers,
  };
}

function pastaOn(options: SandboxOptions, ports: Leases, { addresses }: Resolvers, ip: string | null): NetworkDriver {
  const { pasta, setpriv } = options.parts;
  if (!pasta) throw new Error("pasta is not installed");
  const { open = [], tenantNetworks = [] } = options;
  const names = addresses.map((address) => ({ address, port: 53 }));
  return pastaNetwork({ pasta, setpriv, ip }, ports, { open: [...names, ...open], tenantNetworks });
}

async function tryVeth(options: SandboxOptions, folder: string, resolvers: Resolvers): Promise<NetworkDriver> {
  const { ip, nft } = options.parts;
  if (!ip || !nft) throw new Error(`${ip ? "nft" : "ip"} is not installed`);
  const network = await openVethNetwork(
    {
      ...{ ip, nft, open: options.open ?? [], edgePorts: options.edgePorts ?? [] },
      tenantNetworks: options.tenantNetworks ?? [],
    },
    folder,
    resolvers.addresses,
  );
  const first = await vethFault(options, network);
  if (first === undefined) return network;
  // The probe's outside server is not behind an uplink, so admit its link as well.
  const worlds = [worldLink(network)];
  await admitThroughDocker(network.interfacePrefix, [...uplinks(), ...worlds]);
  const second = await vethFault(options, network);
  await dismissFromDocker(network.interfacePrefix, worlds);
  if (second === undefined) return network;
  throw new Error(second);
}

/** Named after the network's own number, so that platforms that start at the same moment do not share a link or its addresses. */
const worldLink = ({ blockNumber }: VethNetwork): string => `bprobe${blockNumber}`;

/**
 * Checks that a sandbox reaches an outside server through the host but not the host itself. A second namespace, with a name that Berth's
 * rules don't match, stands for the outside. Returns undefined if both hold, else what is wrong.
 */
async function vethFault(options: SandboxOptions, network: VethNetwork): Promise<string | undefined> {
  const id = `probe-${process.pid}-${Math.random().toString(36).slice(2)}`;
  const host = createServer((socket) => socket.end());
  await new Promise<void>((resolve) => host.listen(0, "0.0.0.0", resolve));
  const platform = await openWorld(options, network);
  try {
    const opened = await network.open(id, { kind: "egress" });
    const hostPort = (host.address() as { port: number }).port;
    const targets = [`${platform.address}:${platform.port}`, `${network.hostAddress(id)}:${hostPort}`];
    const result = await runOk(prefixed(opened.prefix, options.nodeBin, ["-e", tryTargets, ...targets]), {
      timeoutMs: patienceMs,
    });
    const [reachesWorld, reachesHost] = JSON.parse(result.stdout) as boolean[];
    if (!reachesWorld) return "packets of a sandbox are not forwarded by this machine's firewall";
    return reachesHost ? "this machine's addresses cannot be shut off from a sandbox" : undefined;
  } finally {
    await network.close(id);
    await platform.close();
    host.close();
  }
}

/** How long a busy machine may take for one step. A step that is given up leaves the platform with a weaker network. */
const patienceMs = 60_000;

// A process that got no processor for two seconds learns of its time limit before it learns of its connection, which comes before setImmediate.
const tryTargets = `
const net = require("node:net");
const reach = (target) => new Promise((resolve) => {
  const [host, port] = target.split(":");
  const socket = net.connect({ host, port: Number(port), timeout: 2000 });
  const end = (answer) => { socket.destroy(); resolve(answer); };
  socket.on("connect", () => end(true)).on("error", () => end(false)).on("timeout", () => setImmediate(end, false));
});
Promise.all(process.argv.slice(1).map(reach)).then((answers) => console.log(JSON.stringify(answers)));
`;
const listen = `require("node:net").createServer((socket) => socket.end()).listen(0, "0.0.0.0", function () { console.log(this.address().port); });`;

/** Starts a server in its own network namespace beside the host, at an address reserved for tests of networks (RFC 2544). */
async function openWorld({ parts, nodeBin }: SandboxOptions, network: VethNetwork) {
  const ip = parts.ip as string;
  const name = worldLink(network);
  const subnet = `198.19.${network.blockNumber >> 6}`;
  const first = (network.blockNumber & 63) * 4;
  const [near, far] = [`${subnet}.${first + 1}`, `${subnet}.${first + 2}`];
  const close = async () => {
    server?.kill("SIGKILL");
    await run({ file: ip, args: ["link", "del", name] }, { timeoutMs: patienceMs });
    await run({ file: ip, args: ["netns", "del", name] }, { timeoutMs: patienceMs });
  };
  let server: ReturnType<typeof start> | undefined;
  // A platform that was killed while it probed leaves its own behind.
  if (existsSync(`/run/netns/${name}`)) await close();
  try {
    await runOk({ file: ip, args: ["netns", "add", name] }, { timeoutMs: patienceMs });
    const outside = [
      `link add ${name} type veth peer name eth0 netns ${name}`,
      `addr add ${near}/30 dev ${name}`,
      `link set ${name} up`,
    ];
    const inside = [
      "link set lo up",
      `addr add ${far}/30 dev eth0`,
      "link set eth0 up",
      `route add default via ${near}`,
    ];
    await runOk({ file: ip, args: ["-batch", "-"] }, { stdin: `${outside.join("\n")}\n`, timeoutMs: patienceMs });
    await runOk(
      { file: ip, args: ["-n", name, "-batch", "-"] },
      { stdin: `${inside.join("\n")}\n`, timeoutMs: patienceMs },
    );
    const started = start(prefixed([ip, "netns", "exec", name], nodeBin, ["-e", listen]), {
      env: { PATH: systemPath },
    });
    server = started;
    const port = await firstLine(started.stdout);
    return { address: far, port, close };
  } catch (cause) {
    await close();
    throw cause;
  }
}

function prefixed(prefix: readonly string[], file: string, args: readonly string[]): Command {
  const words = [...prefix, file, ...args];
  return { file: words[0] as string, args: words.slice(1) };
}

async function firstLine(stream: NodeJS.ReadableStream): Promise<number> {
  const line = new Promise<string>((resolve) => stream.once("data", (chunk: Buffer) => resolve(chunk.toString())));
  const late = sleep(patienceMs, undefined, { ref: false }).then(() => {
    throw new Error("a probe in a network namespace did not start");
  });
  return Number(await Promise.race([line, late]));
}

/** Starts pasta for real: its namespace must come up, and the host's loopback must be unreachable from it. Throws otherwise. */
async function tryPasta(options: SandboxOptions, folder: string, driver: NetworkDriver): Promise<NetworkDriver> {
  accessSync("/dev/net/tun", constants.R_OK | constants.W_OK);
  const id = `probe-${process.pid}-${Math.random().toString(36).slice(2)}`;
  const log = join(folder, id);
  const host = createServer((socket) => socket.end());
  await new Promise<void>((resolve) => host.listen(0, "127.0.0.1", resolve));
  try {
    const opened = await driver.open(id, { kind: "egress" });
    const target = `127.0.0.1:${(host.address() as { port: number }).port}`;
    const pid = await startDetached(prefixed(opened.prefix, options.nodeBin, ["-e", tryTargets, target]), log);
    const said = await until(() => readFileSync(log, "utf8").match(/\[(true|false)\]/)?.[1], { timeoutMs: 10_000 });
    // A failing pasta leaves a waiting child behind in its process group.
    killGroup(pid);
    if (said === undefined)
      throw new Error(`pasta: ${readFileSync(log, "utf8").trim().slice(-300) || "it did not start"}`);
    if (said === "true") throw new Error("pasta does not shut the host's loopback off");
    return driver;
  } finally {
    await driver.close(id);
    host.close();
    rmSync(log, { force: true });
  }
}

function killGroup(pid: number): void {
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // The whole group has exited.
  }
}
