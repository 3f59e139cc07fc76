import { readdirSync } from "node:fs";
import { run } from "../kit/exec.ts";

/** A rule of iptables(8), without the words that add or delete it. */
type Rule = readonly string[];

/**
 * Docker sets the policy of the forward chain to drop and leaves one chain to others. Lets sandboxes out there through this machine's devices
 * and answers back in: what goes to Docker's bridges is left to Docker, which opens published ports only.
 */
export async function admitThroughDocker(interfacePrefix: string, outward: readonly string[]): Promise<void> {
  for (const rule of dockerRules(interfacePrefix, outward)) {
    const known = await iptables("-C", rule);
    if (known && known.exitCode !== 0) await iptables("-I", rule);
  }
}

/** Takes back what `admitThroughDocker` added for these. */
export async function dismissFromDocker(interfacePrefix: string, outward: readonly string[]): Promise<void> {
  for (const name of outward) await iptables("-D", outwardRule(interfacePrefix, name));
}

/** Earlier versions let sandboxes through to everywhere, and their rules outlive them. */
export async function removeWideRules(interfacePrefix: string): Promise<void> {
  for (const direction of ["-i", "-o"]) {
    const removed = await iptables("-D", ["DOCKER-USER", direction, `${interfacePrefix}+`, "-j", "ACCEPT"]);
    if (removed === undefined) return;
  }
}

/** What `admitThroughDocker` makes sure of. */
export function dockerRules(interfacePrefix: string, outward: readonly string[]): Rule[] {
  const answers = ["-m", "conntrack", "--ctstate", "ESTABLISHED,RELATED"];
  return [
    ...outward.map((name) => outwardRule(interfacePrefix, name)),
    ["DOCKER-USER", "-o", `${interfacePrefix}+`, ...answers, "-j", "ACCEPT"],
  ];
}

// `ip link` names them so; other bridges, VLANs and tunnels are the operator's.
const docker = /^(docker.*|br-[0-9a-f]{12}|veth.*)$/;
const ours = /^(b[0-9a-f]{4}-\d+|bprobe\d+)$/;

/** Of a machine's network devices those that lead to other machines: cards, VLANs, bridges, VPNs. Not Docker's, nor those of sandboxes. */
export function outwardDevices(names: readonly string[]): string[] {
  return names.filter((name) => name !== "lo" && !docker.test(name) && !ours.test(name));
}

/** The `outwardDevices` of this machine. */
export function uplinks(): string[] {
  const entries = readdirSync("/sys/class/net", { withFileTypes: true });
  // A file, such as bonding_masters, is no device.
  return outwardDevices(entries.filter((entry) => !entry.isFile()).map(({ name }) => name));
}

const outwardRule = (interfacePrefix: string, name: string): Rule => [
  ...["DOCKER-USER", "-i", `${interfacePrefix}+`, "-o", name, "-j", "ACCEPT"],
];

/** Undefined where there is no iptables(8). */
function iptables(action: "-C" | "-I" | "-D", rule: Rule) {
  const args = ["-w", action, ...rule];
  return run({ file: "iptables", args }, { timeoutMs: 10_000 }).catch(() => undefined);
}
