import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { run, runOk, start, type Command } from "../../src/kit/exec.ts";
import type { CrashCounts } from "./crashes-subject.ts";
import { countRow, type BenchRow } from "./row.ts";
import { benchSize } from "./size.ts";

const kills = benchSize("kills", 1000);
const sandboxes = "10.64.0.0/10";

/** Returns why this machine can't measure crashes. */
export function crashBenchLacks(): string | undefined {
  return process.geteuid?.() === 0 ? undefined : "network namespaces of a machine and of the world around it take root";
}

/**
 * Kills an application's replicas while visitors send requests. A network behind the machine's gateway also has every address
 * of the sandboxes and answers there, so it sees every request that leaves the machine.
 */
export async function measureCrashes(): Promise<readonly BenchRow[]> {
  const [machine, world] = [`bmachine${process.pid}`, `bworld${process.pid}`];
  const folder = mkdtempSync(join(tmpdir(), "berth-crashes-"));
  const stranger = `require("node:http").createServer((q, r) => r.end("stranger")).listen(3000, "0.0.0.0", () => console.log("ready"))`;
  let server: ReturnType<typeof start> | undefined;
  try {
    await makeNamespaces(machine, world);
    server = start(within(world, [process.execPath, "-e", stranger]));
    for await (const _ of server.stdout) break;
    const subject = fileURLToPath(new URL("crashes-subject.ts", import.meta.url));
    const { stdout } = await runOk(within(machine, [process.execPath, subject, folder, String(kills)]));
    const counts = JSON.parse(stdout) as CrashCounts;
    const left = await packetsThatLeft(world);
    const against = `${counts.requests.toLocaleString("en")} requests during ${counts.kills} kills (${counts.refused} refused by the edge, ${counts.own} answered)`;
    return [
      countRow("answers from elsewhere", against, counts.strange),
      countRow("packets that left the machine", against, left),
    ];
  } finally {
    server?.kill("SIGKILL");
    for (const space of [machine, world]) await run({ file: "ip", args: ["netns", "del", space] });
    rmSync(folder, { recursive: true, force: true });
  }
}

const within = (space: string, words: readonly string[]): Command => ({
  file: "nsenter",
  args: [`--net=/run/netns/${space}`, "--", ...words],
});

async function makeNamespaces(machine: string, world: string): Promise<void> {
  for (const space of [machine, world]) await runOk({ file: "ip", args: ["netns", "add", space] });
  const batch = (space: string, lines: readonly string[]) =>
    runOk({ file: "ip", args: ["-n", space, "-batch", "-"] }, { stdin: `${lines.join("\n")}\n` });
  await batch(machine, [
    `link add uplink type veth peer name eth0 netns ${world}`,
    "addr add 203.0.113.1/30 dev uplink",
    "link set uplink up",
    "link set lo up",
    "route add default via 203.0.113.2",
  ]);
  await batch(world, [
    "addr add 203.0.113.2/30 dev eth0",
    "link set eth0 up",
    "link set lo up",
    `route add local ${sandboxes} dev lo`,
    "route add default via 203.0.113.1",
  ]);
  const counting = `table ip seen {\n chain input {\n type filter hook input priority 0; policy accept;\n ip daddr ${sandboxes} counter\n }\n}\n`;
  await runOk(within(world, ["nft", "-f", "-"]), { stdin: counting });
}

async function packetsThatLeft(world: string): Promise<number> {
  const { stdout } = await runOk(within(world, ["nft", "list", "table", "ip", "seen"]));
  return Number(/counter packets (\d+)/.exec(stdout)?.[1]);
}
