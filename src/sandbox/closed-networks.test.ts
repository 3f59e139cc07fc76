import assert from "node:assert/strict";
import { chmodSync, existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { pathToFileURL } from "node:url";
import { run, runOk, start, systemPath, type Command } from "../kit/exec.ts";
import { dockerRules, outwardDevices } from "./docker-firewall.ts";
import { openLeases } from "./leases.ts";
import { pastaNetwork } from "./pasta-network.ts";
import { asUserWithTun, pastaLacks } from "../../test/support/open-tun.ts";
import { guardMs } from "../../test/support/eventually.ts";

const find = (name: string) =>
  systemPath
    .split(":")
    .map((folder) => join(folder, name))
    .find((path) => existsSync(path));
const [ip, nft, pasta, setpriv] = [find("ip"), find("nft"), find("pasta"), find("setpriv")];
const lacks = process.geteuid?.() !== 0 ? "not root" : ip === undefined ? "ip is not installed" : false;
const nobody = 65_534;

// The addresses of cloud metadata services, one of them also a name server, and an ordinary public address.
const nameServer = "168.63.129.16";
const metadata = ["169.254.169.254", "169.254.170.2", nameServer, "100.100.100.200"];
const elsewhere = "198.51.100.7";
// Hosts of the operator's own networks: closed ones, one in a network that is open to tenants, and a service that the platform hands out.
const closed = ["10.20.30.40", "172.20.0.9", "192.168.77.1", "100.65.0.1"];
const [inTenantNetwork, handedOut] = ["10.200.1.1", "192.168.50.5"];
const opened = {
  // Metadata services stay closed whatever is opened.
  tenantNetworks: ["10.200.0.0/16", "169.254.0.0/16", "fd00::/8"],
  open: [{ address: handedOut, port: 80 }],
};
const targets = [
  ...[...metadata, ...closed].map((address) => `${address}:80`),
  ...[`${nameServer}:53`, `${elsewhere}:80`, `${inTenantNetwork}:80`, `${handedOut}:80`, `${handedOut}:53`],
];
const allowed = [...[...metadata, ...closed].map(() => false), true, true, true, true, false];

describe(
  "metadata services and the operator's networks are out of a sandbox's reach; name servers, what is open to tenants, and the world are not",
  { skip: lacks },
  () => {
    // Two namespaces represent the machine and the internet behind its uplink.
    const [machine, platform] = [`bmachine${process.pid}`, `bworld${process.pid}`];
    const folder = mkdtempSync(join(tmpdir(), "berth-closed-"));
    let server: ReturnType<typeof start> | undefined;
    const within = (space: string, { file, args }: Command): Command => ({
      file: "nsenter",
      args: [`--net=/run/netns/${space}`, "--", file, ...args],
    });

    before(async () => {
      chmodSync(folder, 0o755);
      for (const space of [machine, platform]) await runOk({ file: ip as string, args: ["netns", "add", space] });
      const batch = (space: string, lines: readonly string[]) =>
        runOk({ file: ip as string, args: ["-n", space, "-batch", "-"] }, { stdin: `${lines.join("\n")}\n` });
      await batch(machine, [
        `link add uplink type veth peer name eth0 netns ${platform}`,
        "addr add 203.0.113.1/30 dev uplink",
        "link set uplink up",
        "link set lo up",
        "route add default via 203.0.113.2",
      ]);
      await batch(platform, [
        "addr add 203.0.113.2/30 dev eth0",
        "link set eth0 up",
        "link set lo up",
        ...[...metadata, ...closed, inTenantNetwork, handedOut, elsewhere].map(
          (address) => `addr add ${address}/32 dev lo`,
        ),
        "route add default via 203.0.113.1",
      ]);
      const serve = `for (const port of [53, 80]) require("node:net").createServer((s) => s.end()).listen(port, "0.0.0.0", () => console.log(port))`;
      server = start(within(platform, { file: process.execPath, args: ["-e", serve] }));
      let said = "";
      for await (const chunk of server.stdout) if ((said += String(chunk)).split("\n").length > 2) break;
    });
    after(async () => {
      server?.kill("SIGKILL");
      for (const space of [machine, platform]) await run({ file: ip as string, args: ["netns", "del", space] });
      rmSync(folder, { recursive: true, force: true });
    });

    /** Runs `body` in the machine's namespace, with a `network` there. */
    const onMachine = async (body: string) => {
      const driver = JSON.stringify(pathToFileURL(join(import.meta.dirname, "veth-network.ts")));
      const exec = JSON.stringify(pathToFileURL(join(import.meta.dirname, "../kit/exec.ts")));
      const limits = JSON.stringify({ connections: 100, newPerSecond: 1000 });
      const code = `import { openVethNetwork } from ${driver}; import { run } from ${exec}; import { readFileSync } from "node:fs";
      const network = await openVethNetwork(${JSON.stringify({ ip, nft, ...opened })}, ${JSON.stringify(folder)}, ["${nameServer}"], ${limits});
      const inside = async (id, args) => {
        const { prefix } = await network.open(id, { kind: "serve", port: 80 });
        const { stdout } = await run({ file: prefix[0], args: [...prefix.slice(1), process.execPath, ...args] });
        return JSON.parse(stdout);
      };
      const asking = ${JSON.stringify(asking)};
      try { console.log(JSON.stringify(await (async () => { ${body} })())); }
      finally { for (const id of network.ids()) await network.close(id); await network.dismantle(); }`;
      const command = within(machine, { file: process.execPath, args: ["--input-type=module", "-e", code] });
      return JSON.parse((await runOk(command, { timeoutMs: guardMs })).stdout) as unknown;
    };
    const needsNft = { skip: nft === undefined && "nft is not installed" };

    test("by the rules of a machine of root's", needsNft, async () => {
      assert.deepEqual(await onMachine(`return inside("run-test", asking);`), allowed);
    });

    test(
      "what is sent to an ended sandbox does not leave the machine, with its route or without",
      needsNft,
      async () => {
        // The internet's namespace also has every address of the sandboxes, and answers there.
        await runOk({
          file: ip as string,
          args: ["-n", platform, "route", "add", "local", "10.64.0.0/10", "dev", "lo"],
        });
        const found = await onMachine(`
        const { serve } = await network.open("run-gone", { kind: "serve", port: 80 });
        await network.close("run-gone");
        const [node, ...args] = [process.execPath, "-e", asking[1], serve.address.host + ":80"];
        const reach = async () => JSON.parse((await run({ file: node, args })).stdout);
        const withRoute = await reach();
        await run({ file: ${JSON.stringify(ip)}, args: ["route", "del", "unreachable", network.block] });
        return [withRoute, await reach()];`);
        assert.deepEqual(found, [[false], [false]]);
      },
    );

    test("one sandbox cannot fill the machine's table of connections", needsNft, async () => {
      const flood = `const socket = require("node:dgram").createSocket("udp4");
        let left = 3000;
        const done = () => --left === 0 && setTimeout(() => { console.log(1); process.exit(); }, 100);
        for (let port = 1000; port < 4000; port += 1) socket.send("x", port, "${elsewhere}", done);`;
      const found = (await onMachine(`
        await inside("run-flood", ["-e", ${JSON.stringify(flood)}]);
        const count = Number(readFileSync("/proc/sys/net/netfilter/nf_conntrack_count", "utf8"));
        return [count, await inside("run-flood", asking), await inside("run-other", asking)];`)) as [
        number,
        unknown,
        unknown,
      ];
      const [count, flooder, neighbour] = found;
      assert.ok(count >= 90 && count <= 120, `${count} connections are in the table`);
      assert.deepEqual(
        flooder,
        targets.map(() => false),
      );
      assert.deepEqual(neighbour, allowed);
    });

    test(
      "a start removes the network of a data folder that was deleted, once no process is in it",
      needsNft,
      async () => {
        const deleted = join(folder, "deleted");
        const found = await onMachine(`
        const { mkdirSync, rmSync } = await import("node:fs");
        const start = (dir) => openVethNetwork(${JSON.stringify({ ip, nft })}, dir, [], ${JSON.stringify({ connections: 100, newPerSecond: 1000 })});
        const tables = async () => (await run({ file: ${JSON.stringify(nft)}, args: ["list", "tables"] })).stdout.split("inet berth_").length - 1;
        const deleted = ${JSON.stringify(deleted)};
        mkdirSync(deleted);
        const abandoned = await start(deleted);
        const { prefix } = await abandoned.open("run-left", { kind: "egress" });
        const { spawn } = await import("node:child_process");
        const left = spawn(prefix[0], [...prefix.slice(1), process.execPath, "-e", "console.log(1); setInterval(() => {}, 1000)"]);
        await new Promise((resolve) => left.stdout.once("data", resolve));
        rmSync(deleted, { recursive: true });
        await start(${JSON.stringify(folder)});
        const withProcess = await tables();
        left.kill("SIGKILL");
        await new Promise((resolve) => left.once("close", resolve));
        await start(${JSON.stringify(folder)});
        return [withProcess, await tables()];`);
        assert.deepEqual(found, [2, 1]);
      },
    );

    test("a data folder whose block another one took while it was stopped gets another block", needsNft, async () => {
      const [stopped, other] = [join(folder, "stopped"), join(folder, "other")];
      const found = await onMachine(`
        const { cpSync, mkdirSync } = await import("node:fs");
        const start = (dir) => openVethNetwork(${JSON.stringify({ ip, nft })}, dir, [], ${JSON.stringify({ connections: 100, newPerSecond: 1000 })});
        mkdirSync(${JSON.stringify(stopped)});
        const first = await start(${JSON.stringify(stopped)});
        const again = await start(${JSON.stringify(stopped)});
        await again.dismantle();
        cpSync(${JSON.stringify(stopped)}, ${JSON.stringify(other)}, { recursive: true });
        const taker = await start(${JSON.stringify(other)});
        const mover = await start(${JSON.stringify(stopped)});
        await taker.dismantle();
        const stays = await start(${JSON.stringify(stopped)});
        return [again.block === first.block, taker.block === first.block, mover.block !== first.block, stays.block === mover.block];`);
      assert.deepEqual(found, [true, true, true, true]);
    });

    test("by an ordinary user's own rules", { skip: pastaLacks }, async (t) => {
      if ((await run({ file: process.execPath, args: ["-e", ""] }, { uid: nobody, gid: nobody })).exitCode !== 0) {
        return t.skip("Node cannot be run by other users");
      }
      const programs = { pasta: pasta as string, setpriv: setpriv as string, ip: ip as string };
      const network = pastaNetwork(programs, openLeases(join(folder, "ports"), 20_000, 10), {
        ...opened,
        open: [...opened.open, { address: nameServer, port: 53 }],
      });
      const { prefix } = await network.open("run-test", { kind: "egress" });
      const inside = { file: prefix[0] as string, args: [...prefix.slice(1), process.execPath, ...asking] };
      const asked = await runOk(within(machine, asUserWithTun(nobody, inside)), { timeoutMs: guardMs });
      assert.deepEqual(JSON.parse(asked.stdout), allowed);
    });
  },
);

test("with Docker, sandboxes are let through to uplinks and answers back, not to Docker's bridges", () => {
  assert.deepEqual(
    dockerRules("b12ab-", ["eth0"]).map((rule) => rule.join(" ")),
    [
      "DOCKER-USER -i b12ab-+ -o eth0 -j ACCEPT",
      "DOCKER-USER -o b12ab-+ -m conntrack --ctstate ESTABLISHED,RELATED -j ACCEPT",
    ],
  );
});

test("Docker's own devices and those of sandboxes are no uplinks, all others are", () => {
  const outward = ["eth0", "enp3s0", "wlan0", "eth0.10", "bond0", "br0", "br-lan", "wg0", "tailscale0", "tun0"];
  const inward = ["lo", "docker0", "docker_gwbridge", "br-0a1b2c3d4e5f", "veth12ab3cd", "b12ab-583", "bprobe4711"];
  assert.deepEqual(outwardDevices([...inward, ...outward]), outward);
});

const asking = [
  "-e",
  `const net = require("node:net");
  const reach = (target) => new Promise((resolve) => {
    const [host, port] = target.split(":");
    const socket = net.connect({ host, port: Number(port), timeout: 3000 });
    socket.on("connect", () => resolve(true)).on("error", () => resolve(false)).on("timeout", () => resolve(false));
  });
  Promise.all(process.argv.slice(1).map(reach)).then((all) => { console.log(JSON.stringify(all)); process.exit(); })`,
  ...targets,
];
