import { createHash } from "node:crypto";
import { copyFileSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { createServer, type Server } from "node:net";
import { once } from "node:events";
import { join } from "node:path";
import { run, runOk } from "../../src/kit/exec.ts";
import { until } from "../../src/kit/until.ts";
import { startTestEngine, type TestEngine } from "./docker-engine.ts";
import { makeRegistryCertificates } from "../../src/adapters/runtime-swarm/registry-certificates.ts";
import type { SwarmNode } from "../../src/adapters/runtime-swarm/swarm-api.ts";
import { eventually, guardMs } from "./eventually.ts";
import { lendSetting } from "./lend-setting.ts";

/** A machine of a swarm with its engine. The first machine is the one that runs the tests; the others are network namespaces. */
export interface TestMachine extends TestEngine {
  readonly name: string;
  readonly address: string;
  /** A command prefix that runs a command on this machine. */
  readonly enter: readonly string[];
  /** Connects the machine to the network, or disconnects it. */
  connect(isConnected: boolean): Promise<void>;
}

export interface TestMachines {
  readonly machines: readonly TestMachine[];
  /** Address of the bridge between the machines; it belongs to the machine that runs the tests. */
  readonly address: string;
  /** Folder with the client certificates for the engines of all managers but the first; they listen on `enginePort`. */
  readonly certificates: string;
  close(): Promise<void>;
}

export const enginePort = 2376;

const settings = {
  ...{ "live-restore": false, "no-new-privileges": true, mtu: 1400 },
};
// A network namespace has its own iptables rules. On the machine that runs the tests, the engine's proxy forwards the ports of replicas.
const ownRules = { iptables: true, ...settings };
const noRules = { "userland-proxy": true, ...settings };

/** `workers`: the first machine manages the swarm. `managers`: all manage it and the last one leads. `strangers`: only the first is in it. */
export type SwarmForm = "workers" | "managers" | "strangers";

/** Starts `count` machines. Tests take turns, because an engine uses fixed names and ports for its swarm. */
export async function startMachines(count: number, form: SwarmForm = "workers"): Promise<TestMachines> {
  const turn = await takeTurn();
  const lan = await openLan();
  const machines: TestMachine[] = [];
  const certificates = mkdtempSync(join(tmpdir(), "berth-managers-"));
  const close = async () => {
    await Promise.all(machines.map((machine) => machine.close()));
    for (const { name } of machines.slice(1)) await run({ file: "ip", args: ["netns", "delete", name] });
    await run({ file: "ip", args: ["link", "delete", swarmBridge] });
    await closeLan(lan);
    await lan.giveBack();
    rmSync(certificates, { recursive: true, force: true });
    turn.close();
  };
  try {
    for (let index = 1; index <= count; index += 1)
      machines.push(index === 1 ? await firstMachine(lan) : await startMachine(lan, { index, form, certificates }));
    await formSwarm(form, machines);
    return { machines, address: lan.address, certificates, close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Listens on an abstract socket, which works as a lock: one process can hold it, and the kernel releases it when the process dies. */
async function takeTurn(): Promise<Server> {
  const take = async () => {
    const server = createServer().listen("\0berth-test-swarm");
    const isTaken = await once(server, "listening").then(
      () => false,
      () => true,
    );
    return isTaken ? undefined : server.unref();
  };
  return eventually(take, "another test's swarm ends", turnMs);
}

const turnMs = 2 * guardMs;
const swarmBridge = "docker_gwbridge";

interface Lan {
  readonly bridge: string;
  readonly subnet: string;
  readonly address: string;
  /** Restores the number of TCP retries on the machine that runs the tests. */
  readonly giveBack: () => Promise<void>;
}

const retriesFile = "/proc/sys/net/ipv4/tcp_retries2";
/** TCP retries before a connection fails; fewer than usual, so that lost machines are detected quickly. */
const retries = "5";

/** Creates a network within 10.213.0.0/16, which neither Berth, test engines nor podman use. */
async function openLan(): Promise<Lan> {
  await removeAbandoned();
  const tag = createHash("sha256").update(`${process.pid}/${Date.now()}`).digest();
  const third = tag.readUInt8(0);
  const giveBack = await lendSetting(retriesFile, retries);
  const lan = { bridge: `btm${process.pid}`, subnet: `10.213.${third}.0/24`, address: `10.213.${third}.1`, giveBack };
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

/** Removes bridges and namespaces of tests that were killed. */
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

async function firstMachine({ address }: Lan): Promise<TestMachine> {
  return { ...(await startTestEngine(noRules)), name: "", address, enter: [], connect: async () => {} };
}

interface Form {
  readonly index: number;
  readonly form: SwarmForm;
  readonly certificates: string;
}

/** A stranger gets its own /etc/docker; other engines share the one of the machine that runs the tests. A manager listens on the network. */
async function startMachine(lan: Lan, { index, form, certificates }: Form): Promise<TestMachine> {
  const isStranger = form === "strangers";
  const name = `${lan.bridge}-${index}`;
  const [cable, address] = [`bv${index}-${process.pid}`, lan.address.replace(/1$/, String(10 + index))];
  await ip("netns", "add", name);
  await ip("link", "add", cable, "type", "veth", "peer", "name", "eth0", "netns", name);
  await ip("link", "set", cable, "master", lan.bridge, "up");
  await ip("-n", name, "link", "set", "lo", "up");
  await ip("-n", name, "address", "add", `${address}/24`, "dev", "eth0");
  await ip("-n", name, "link", "set", "eth0", "up");
  await ip("-n", name, "route", "add", "default", "via", lan.address);
  // `ip netns exec` would mount a new /sys, which lacks control groups.
  const net = [`--net=/run/netns/${name}`];
  const settle = `echo 1 > /proc/sys/net/ipv4/ip_forward; echo ${retries} > ${retriesFile}`;
  await runOk({ file: "nsenter", args: [...net, "sh", "-c", settle] });
  const hostname = ["unshare", "--uts", "sh", "-c", 'hostname "$0" && exec "$@"', name];
  const ownFolder = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs none /etc/docker && exec "$@"', "sh"];
  const enter = ["nsenter", ...net, ...hostname];
  const engine = isStranger
    ? await startTestEngine(ownRules, [...enter, ...ownFolder])
    : form === "workers"
      ? await startTestEngine(ownRules, enter)
      : await startTestEngine({ ...ownRules, ...(await tlsOf(certificates, address)) }, enter, [
          `tcp://${address}:${enginePort}`,
        ]);
  return {
    ...{ ...engine, name, address, enter: isStranger ? inEngine(engine, enter) : enter },
    connect: (isConnected) => ip("link", "set", cable, isConnected ? "up" : "down"),
  };
}

/** Creates the certificate of an engine at this address, and a client certificate under the file names that Docker expects. */
async function tlsOf(folder: string, address: string): Promise<object> {
  await makeRegistryCertificates(folder, address);
  const path = (name: string) => join(folder, name);
  copyFileSync(path("client.pem"), path("cert.pem"));
  copyFileSync(path("client.key"), path("key.pem"));
  for (const kind of ["pem", "key"]) copyFileSync(path(`server.${kind}`), path(`${address}.${kind}`));
  const own = { tlscert: path(`${address}.pem`), tlskey: path(`${address}.key`) };
  return { tlsverify: true, tlscacert: path("ca.pem"), ...own };
}

/** Runs commands in the engine's mount namespace. */
const inEngine = ({ dir }: TestEngine, enter: readonly string[]): readonly string[] => [
  ...["nsenter", `--mount=/proc/${readFileSync(join(dir, "docker.pid"), "utf8").trim()}/ns/mnt`],
  ...enter,
];

async function formSwarm(form: SwarmForm, machines: readonly TestMachine[]): Promise<void> {
  const [first, ...later] = form === "managers" ? machines.toReversed() : machines;
  if (first === undefined) return;
  const others = form === "strangers" ? [] : later;
  const role = form === "managers" ? "Manager" : "Worker";
  const listen = (address: string) => ({ ListenAddr: `${address}:2377`, AdvertiseAddr: address });
  await first.api.call({ method: "POST", path: "/swarm/init", body: listen(first.address) });
  const { JoinTokens: tokens } = await first.api.call<{ JoinTokens: Record<typeof role, string> }>({ path: "/swarm" });
  const body = { RemoteAddrs: [`${first.address}:2377`], JoinToken: tokens[role] };
  for (const { api, address } of others)
    await api.call({ method: "POST", path: "/swarm/join", body: { ...body, ...listen(address) } });
  if (!(await until(() => isWhole(first, others.length + 1, role), { timeoutMs: guardMs })))
    throw new Error("the machines did not form a swarm");
}

/** Whether all machines are ready and, as managers, reachable: only then does the swarm survive the loss of a manager. */
async function isWhole({ api }: TestMachine, count: number, role: "Manager" | "Worker"): Promise<true | undefined> {
  const nodes = await api.call<readonly SwarmNode[]>({ path: "/nodes" });
  const isIn = ({ Status: status, ManagerStatus: manager }: SwarmNode) =>
    status.State === "ready" && (role === "Worker" || manager?.Reachability === "reachable");
  return nodes.filter(isIn).length === count || undefined;
}

async function ip(...args: readonly string[]): Promise<void> {
  await runOk({ file: "ip", args });
}
