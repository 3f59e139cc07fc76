import { readdirSync } from "node:fs";
import { run } from "../kit/exec.ts";

/** The match and target of an iptables(8) rule, without the `-I`, `-C` or `-D` action. */
type Rule = readonly string[];

/**
 * Adds rules to Docker's DOCKER-USER chain, because Docker sets the forward chain's policy to drop: sandboxes may send through the devices
 * of `outward`, and replies may return. Traffic to Docker's bridges is left to Docker, which opens published ports only.
 */
export async function admitThroughDocker(interfacePrefix: string, outward: readonly string[]): Promise<void> {
  for (const rule of dockerRules(interfacePrefix, outward)) {
    const known = await iptables("-C", rule);
    if (known && known.exitCode !== 0) await iptables("-I", rule);
  }
}

/** Removes the rules that `admitThroughDocker` added for the devices of `outward`. */
export async function dismissFromDocker(interfacePrefix: string, outward: readonly string[]): Promise<void> {
  for (const name of outward) await iptables("-D", outwardRule(interfacePrefix, name));
}

/** Returns the rules that `admitThroughDocker` adds. */
export function dockerRules(interfacePrefix: string, outward: readonly string[]): Rule[] {
  const answers = ["-m", "conntrack", "--ctstate", "ESTABLISHED,RELATED"];
  return [
    ...outward.map((name) => outwardRule(interfacePrefix, name)),
    ["DOCKER-USER", "-o", `${interfacePrefix}+`, ...answers, "-j", "ACCEPT"],
  ];
}

// Docker's device names in `ip link`; other bridges, VLANs and tunnels belong to the operator.
const docker = /^(docker.*|br-[0-9a-f]{12}|veth.*)$/;
const ours = /^(b[0-9a-f]{4,8}-\d+|bprobe\d+)$/;

/** Filters network devices down to those that lead to other machines: cards, VLANs, bridges, VPNs, but neither Docker's nor sandboxes'. */
export function outwardDevices(names: readonly string[]): string[] {
  return names.filter((name) => name !== "lo" && !docker.test(name) && !ours.test(name));
}

/** Returns the `outwardDevices` of this machine. */
export function uplinks(): string[] {
  const entries = readdirSync("/sys/class/net", { withFileTypes: true });
  // Plain files such as bonding_masters are not devices.
  return outwardDevices(entries.filter((entry) => !entry.isFile()).map(({ name }) => name));
}

const outwardRule = (interfacePrefix: string, name: string): Rule => [
  ...["DOCKER-USER", "-i", `${interfacePrefix}+`, "-o", name, "-j", "ACCEPT"],
];

/** Runs iptables(8); resolves to undefined if it is not installed. */
function iptables(action: "-C" | "-I" | "-D", rule: Rule) {
  const args = ["-w", action, ...rule];
  return run({ file: "iptables", args }, { timeoutMs: 10_000 }).catch(() => undefined);
}
