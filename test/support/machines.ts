import { createHash } from "node:crypto";
import { readdirSync, writeFileSync } from "node:fs";
import { run, runOk } from "../../src/kit/exec.ts";
import { until } from "../../src/kit/until.ts";
import { startTestEngine, type TestEngine } from "./docker-engine.ts";
import { guardMs } from "./eventually.ts";

/** An engine of a swarm: the first one's machine is that of the tests, all others have network namespaces, which are to it what machines are. */
export interface TestMachine extends TestEngine {
  readonly name: string;
  readonly address: string;
  /** Takes the machine off the network, or connects it again. */
  connect(isConnected: boolean): Promise<void>;
}

export interface TestMachines {
  /** The first one manages the swarm of all. */
  readonly machines: readonly TestMachine[];
  /** Of the bridge that connects them, which belongs to the machine that the tests run on. */
  readonly address: string;
  close(): Promise<void>;
}

const settings = { "live-restore": false, "no-new-privileges": true, mtu: 1400 };
// A network namespace takes rules of its own; on the machine of the tests the engine forwards the ports of replicas itself.
const ownRules = { iptables: true, ...settings };
const noRules = { "userland-proxy": true, ...settings };

/** Starts so many machines, as one swarm. Only one test at a time can: an engine has fixed names and ports for its swarm. */
export async function startMachines(count: number): Promise<TestMachines> {
  const lan = await openLan();
  const machines: TestMachine[] = [];
  const close = async () => {
    await Promise.all(machines.map((machine) => machine.close()));
    for (const { name } of machines.slice(1)) await run({ file: "ip", args: ["netns", "delete", name] });
    await run({ file: "ip", args: ["link", "delete", swarmBridge] });
    await closeLan(lan);
  };
  try {
    for (let index = 1; index <= count; index += 1) machines.push(await startMachine(lan, index));
    await formSwarm(machines);
    return { machines, address: lan.address, close };
  } catch (error) {
    await close();
    throw error;
  }
}

const swarmBridge = "docker_gwbridge";

interface Lan {
  readonly bridge: string;
  readonly subnet: string;
  readonly address: string;
}

/** Below 10.213.0.0/16, which neither Berth, engines of tests nor podman use. */
async function openLan(): Promise<Lan> {
  await removeAbandoned();
  const tag = createHash("sha256").update(`${process.pid}/${Date.now()}`).digest();
  const third = tag.readUInt8(0);
  const lan = { bridge: `btm${process.pid}`, subnet: `10.213.${third}.0/24`, address: `10.213.${third}.1` };
  writeFileSync("/proc/sys/net/ipv4/ip_forward", "1");
  await ip("link", "add", lan.bridge, "type", "bridge");
  await ip("address", "add", `${lan.address}/24`, "dev", lan.bridge);
  await ip("link", "set", lan.bridge, "up");
  const chain = `chain out { type nat hook postrouting priority srcnat; ip saddr ${lan.subnet} ip daddr != ${lan.subnet} masquerade; }`;
  await runOk({ file: "nft", args: ["-f", "-"] }, { stdin: `table ip ${lan.bridge} {\n${chain}\n}\n` });
  return lan;
}

async function closeLan({ bridge }: Pick<Lan, "bridge">): Promise<void> {
  await run({ file: "ip", args: ["link", "delete", bridge] });
  await run({ file: "nft", args: ["delete", "table", "ip", bridge] });
}

/** Bridges and namespaces of a test that was killed. */
async function removeAbandoned(): Promise<void> {
  const isGone = (name: string) => {
    const [, pid] = /^btm(\d+)(?:-\d+)?$/.exec(name) ?? [];
    return pid !== undefined && !readdirSync("/proc").includes(pid);
  };
  const { stdout } = await run({ file: "ip", args: ["netns", "list"] });
  for (const name of stdout.split("\n").map((line) => line.split(" ")[0] ?? ""))
    if (isGone(name)) await run({ file: "ip", args: ["netns", "delete", name] });
  for (const bridge of readdirSync("/sys/class/net").filter(isGone)) await closeLan({ bridge });
}

async function startMachine(lan: Lan, index: number): Promise<TestMachine> {
  if (index === 1)
    return { ...(await startTestEngine(noRules)), name: "", address: lan.address, connect: async () => {} };
  const name = `${lan.bridge}-${index}`;
  const [cable, address] = [`bv${index}-${process.pid}`, lan.address.replace(/1$/, String(10 + index))];
  await ip("netns", "add", name);
  await ip("link", "add", cable, "type", "veth", "peer", "name", "eth0", "netns", name);
  await ip("link", "set", cable, "master", lan.bridge, "up");
  await ip("-n", name, "link", "set", "lo", "up");
  await ip("-n", name, "address", "add", `${address}/24`, "dev", "eth0");
  await ip("-n", name, "link", "set", "eth0", "up");
  await ip("-n", name, "route", "add", "default", "via", lan.address);
  // `ip netns exec` would mount another /sys, without control groups.
  const net = [`--net=/run/netns/${name}`];
  await runOk({ file: "nsenter", args: [...net, "sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward"] });
  const hostname = ["sh", "-c", 'hostname "$0" && exec "$@"', name];
  const engine = await startTestEngine(ownRules, ["nsenter", ...net, "unshare", "--uts", ...hostname]);
  return {
    ...{ ...engine, name, address },
    connect: (isConnected) => ip("link", "set", cable, isConnected ? "up" : "down"),
  };
}

async function formSwarm([first, ...others]: readonly TestMachine[]): Promise<void> {
  if (first === undefined) return;
  const listen = (address: string) => ({ ListenAddr: `${address}:2377`, AdvertiseAddr: address });
  await first.api.call({ method: "POST", path: "/swarm/init", body: listen(first.address) });
  const { JoinTokens: tokens } = await first.api.call<{ JoinTokens: { Worker: string } }>({ path: "/swarm" });
  const body = { RemoteAddrs: [`${first.address}:2377`], JoinToken: tokens.Worker };
  for (const { api, address } of others)
    await api.call({ method: "POST", path: "/swarm/join", body: { ...body, ...listen(address) } });
  const areReady = async () => {
    const nodes = await first.api.call<readonly { Status: { State: string } }[]>({ path: "/nodes" });
    return nodes.filter((node) => node.Status.State === "ready").length === others.length + 1 || undefined;
  };
  if (!(await until(areReady, { timeoutMs: guardMs }))) throw new Error("the machines formed no swarm");
}

async function ip(...args: readonly string[]): Promise<void> {
  await runOk({ file: "ip", args });
}
