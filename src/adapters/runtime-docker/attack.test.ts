import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { lookup } from "node:dns/promises";
import { once } from "node:events";
import { chmodSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync } from "node:fs";
import { createServer, type Server } from "node:net";
import { after, before, describe, it } from "node:test";
import { networkInterfaces, tmpdir } from "node:os";
import { join } from "node:path";
import { withoutDocker } from "../../../test/support/docker-engine.ts";
import { run, runOk, start } from "../../kit/exec.ts";
import { unixSocketOf, type ServerAddress } from "../../kit/server-address.ts";
import { until } from "../../kit/until.ts";
import type { OneOffCommand, OneOffResult, Runtime, Workload } from "../../ports/runtime.ts";
import { makeContainers, type TestContainers } from "../../../test/support/containers.ts";
import { guardMs } from "../../../test/support/eventually.ts";

// Drawn with other container files: what a runtime and a builder promise is shown by those of processes in every run.

const waitMs = guardMs;
const server = `require("node:http").createServer((q, r) => r.end("here")).listen(Number(process.env.PORT));`;
// Prints for each address whether a connection succeeded.
const dial = `
const net = require("node:net");
for (const address of process.argv.slice(2)) {
  const [host, port] = address.split("|");
  const socket = net.connect({ host, port: Number(port), timeout: 3000 });
  socket.on("connect", () => { console.log(address, "OPEN"); socket.destroy(); });
  socket.on("error", () => console.log(address, "closed"));
  socket.on("timeout", () => { console.log(address, "closed"); socket.destroy(); });
}`;

const cutOff = await forwardsNothing();
const publicName = "deb.debian.org";
const nameless = await findsNoNames();

/** Attacks that hostile code tries from inside a container. */
describe("a container of an application", { skip: withoutDocker }, () => {
  let fixture: TestContainers;
  let image: string;
  const listeners: Server[] = [];
  const project = { project_id: "prj_attack", project_number: 911 };
  const limits = { memoryBytes: 128 * 1024 * 1024, processes: 48, cpus: 1 };
  const workload = (more: Partial<Workload> = {}): Workload => ({
    ...{ id: "dep_attack", ...project, process: "web", image_ref: image, port: 3000, env: {}, limits, reach: [] },
    ...{ storage_access: "open", ...more },
  });
  const runIn = async (
    command: string,
    more: Partial<Workload> = {},
    task: Partial<OneOffCommand> = {},
    runtime: Runtime = fixture.runtime,
  ) => {
    const output: string[] = [];
    const result: OneOffResult = await runtime.runOnce(workload(more), {
      ...{ command, timeoutMs: waitMs, silenceMs: waitMs, signal: new AbortController().signal },
      onOutput: (chunk) => void output.push(chunk.toString()),
      ...task,
    });
    return { result, output: output.join("") };
  };
  const listen = (target: { readonly host: string; readonly port: number } | { readonly path: string }) =>
    new Promise<number>((resolve) => {
      const listener = createServer((socket) => socket.on("error", () => {}).end("database")).listen(target, () => {
        const address = listener.address();
        resolve(address !== null && typeof address === "object" ? address.port : 0);
      });
      listeners.push(listener);
    });
  before(async () => {
    fixture = await makeContainers({}, { layerBytes: 64 * 1024 * 1024 });
    image = await fixture.makeImage(project.project_id, { "server.js": server, "dial.js": dial }, "node server.js");
  });
  after(async () => {
    for (const listener of listeners) listener.close();
    await fixture.close();
  });

  it("has no capability, no new privileges, a system call filter, a user of its own, and may write to its folder, storage, and the folders of memory only", async () => {
    const script = [
      'grep -E "^(CapEff|CapBnd|CapPrm|NoNewPrivs|Seccomp):" /proc/self/status',
      "id -u",
      'for path in / /etc /usr /bin /var /var/log /var/cache /proc/sys/kernel; do touch "$path/x" 2>/dev/null && echo "wrote to $path"; done',
      'touch /app/x "$STORAGE_DIR/x" /tmp/x "$HOME/x" /var/log/server/x /var/cache/server/x && echo wrote',
      "mount -t tmpfs none /tmp 2>/dev/null && echo mounted",
      "echo b 2>/dev/null >/proc/sysrq-trigger && echo triggered",
      "ls /dev | sort | tr '\\n' ' '",
    ].join("; ");
    const { output } = await runIn(script);
    assert.match(output, /CapPrm:\t0+\nCapEff:\t0+\nCapBnd:\t0+\nNoNewPrivs:\t1\nSeccomp:\t2\n20911\nwrote\n/);
    assert.doesNotMatch(output, /wrote to|mounted|triggered|\b(sda|vda|kmsg|mem)\b/);
  });

  // The control plane and a swarm's registry listen at addresses of the host. swarm-runtime.test.ts tests the registry itself.
  it("reaches no port of the host, no metadata service, no private network, and no other project's container", async () => {
    const other = { project_id: "prj_victim", project_number: 912 };
    const image_ref = await fixture.makeImage(other.project_id, { "server.js": server }, "node server.js");
    const victim = workload({ id: "dep_victim", ...other, image_ref });
    const { address } = await fixture.runtime.start(victim, { ordinal: 0, attempt: 1 });
    assert.ok(address);
    const answer = () => fetch(`http://${address.host}:${address.port}`).then((found) => found.text());
    assert.equal(await until(() => answer().catch(() => undefined), { timeoutMs: waitMs }), "here");
    const port = await listen({ host: "0.0.0.0", port: 0 });
    const hosts = Object.values(networkInterfaces()).flatMap((found) => found ?? []);
    const own = hosts.filter(({ family, internal }) => family === "IPv4" && !internal).map((each) => each.address);
    const targets = [
      ...own.slice(0, 40).map((host) => `${host}|${port}`),
      `${address.host}|${address.port}`,
      ...["169.254.169.254|80", "168.63.129.16|80", "192.168.0.1|80", "10.0.0.1|80", "127.0.0.1|5432"],
    ];
    const { output } = await runIn(`node dial.js ${targets.map((target) => `'${target}'`).join(" ")}`);
    assert.doesNotMatch(output, /OPEN/);
    for (const target of targets) assert.ok(output.includes(`${target} closed`), target);
    await fixture.runtime.remove(victim.id);
  });

  it("reaches the host neither by IPv6 nor by UDP nor by ping", async () => {
    const port = await listen({ host: "::", port: 0 });
    const heard: string[] = [];
    const datagrams = createSocket("udp4", (message) => void heard.push(message.toString()));
    datagrams.bind(0);
    await once(datagrams, "listening");
    try {
      const all = Object.entries(networkInterfaces()).flatMap(([name, found = []]) =>
        found.map((each) => ({ ...each, name })),
      );
      const local = all.filter(({ family, internal }) => family === "IPv6" && !internal).slice(0, 40);
      const targets = local.map(({ address }) => `${address}${address.startsWith("fe80") ? "%eth0" : ""}|${port}`);
      const own = all.filter(({ family, internal }) => family === "IPv4" && !internal).map(({ address }) => address);
      const send = `const socket = require("node:dgram").createSocket("udp4");
        const hosts = ${JSON.stringify(own)}; let left = hosts.length;
        for (const host of hosts) socket.send("from a container", ${datagrams.address().port}, host, () => { if ((left -= 1) === 0) socket.close(); });`;
      const quoted = targets.map((target) => `'${target}'`).join(" ");
      const { output } = await runIn(
        `node dial.js ${quoted}; node -e '${send}'; ping -c 1 -W 1 ${own[0]} 2>&1; echo tried`,
      );
      assert.match(output, /tried/);
      assert.doesNotMatch(output, /OPEN|bytes from/);
      assert.deepEqual(heard, []);
    } finally {
      datagrams.close();
    }
  });

  it("finds names as this machine does", { skip: nameless }, async () => {
    const { output } = await runIn(
      `node -e 'require("node:dns").lookup("${publicName}", (error, address) => console.log(error?.code ?? "found", address))'`,
    );
    assert.match(output, /^found [\d.:a-f]+\n$/);
  });

  it(
    "reaches the world, and of this machine the edge's port, where its own hostnames are served, and a server that is open to it",
    { skip: cutOff },
    async () => {
      const world = await openWorld();
      const edge = await listen({ host: "0.0.0.0", port: 0 });
      const other = await listen({ host: "0.0.0.0", port: 0 });
      const [here, there] = [world.near, world.far];
      const database = await listen({ host: here, port: 0 });
      const runtime = await fixture.reopen({ edgePorts: [edge], open: [{ address: here, port: database }] });
      try {
        const targets = [`${there}|80`, `${here}|${edge}`, `${here}|${database}`, `${here}|${other}`];
        const { output } = await runIn(
          `node dial.js ${targets.map((target) => `'${target}'`).join(" ")}`,
          {},
          {},
          runtime,
        );
        assert.deepEqual(
          output.trim().split("\n").toSorted(),
          [...targets.slice(0, 3).map((target) => `${target} OPEN`), `${here}|${other} closed`].toSorted(),
        );
      } finally {
        await world.close();
      }
    },
  );

  it("reaches its project's database, and no other project's: not its server's socket, and not through that project's container", async () => {
    const folders = [mkdtempSync(join(tmpdir(), "berth-own-db-")), mkdtempSync(join(tmpdir(), "berth-other-db-"))];
    const [own, others] = folders.map((host, index) => ({ host, port: 5432 + index })) as [
      ServerAddress,
      ServerAddress,
    ];
    for (const address of [own, others]) {
      const path = unixSocketOf(address) as string;
      await listen({ path });
      chmodSync(address.host, 0o711);
      chmodSync(path, 0o777);
    }
    const other = { project_id: "prj_tenant", project_number: 913 };
    const image_ref = await fixture.makeImage(other.project_id, { "server.js": server }, "node server.js");
    const victim = workload({ id: "dep_tenant", ...other, image_ref, reach: [others] });
    const { address } = await fixture.runtime.start(victim, { ordinal: 0, attempt: 1 });
    assert.ok(address);
    const [mine, theirs] = [own, others].map((each) => fixture.runtime.endpointFor(each)) as [
      ServerAddress,
      ServerAddress,
    ];
    const targets = [mine, theirs, { host: address.host, port: theirs.port }].map(
      ({ host, port }) => `${host}|${port}`,
    );
    const sockets = "find / -xdev -name '.s.PGSQL*' 2>/dev/null; ls /reach 2>/dev/null";
    const { output } = await runIn(`node dial.js ${targets.map((each) => `'${each}'`).join(" ")}; ${sockets}`, {
      reach: [own],
    });
    assert.deepEqual(
      output.trim().split("\n").toSorted(),
      [`${targets[0]} OPEN`, ...targets.slice(1).map((each) => `${each} closed`)].toSorted(),
    );
    await fixture.runtime.remove(victim.id);
    for (const folder of folders) rmSync(folder, { recursive: true, force: true });
  });

  it("floods its log without end: a bounded part of it stays, what was lost is counted, and a neighbour is served", async () => {
    const flood = `${server} const text = "x".repeat(1000) + "\\n"; const more = () => process.stdout.write(text.repeat(100), more); more();`;
    const image_ref = await fixture.makeImage(project.project_id, { "server.js": flood }, "node server.js");
    const [flooder, neighbour] = [workload({ id: "dep_flood", image_ref }), workload({ id: "dep_beside" })];
    await fixture.runtime.start(flooder, { ordinal: 0, attempt: 1 });
    const { address } = await fixture.runtime.start(neighbour, { ordinal: 0, attempt: 1 });
    assert.ok(address);
    const key = { workload_id: flooder.id, ordinal: 0, attempt: 1 };
    const first = await until(
      async () => {
        const chunk = await fixture.runtime.readOutput(key, null);
        return chunk.lines.length > 0 ? chunk : undefined;
      },
      { timeoutMs: waitMs },
    );
    assert.ok(first);
    const answer = () => fetch(`http://${address.host}:${address.port}`).then((found) => found.text());
    // The engine keeps two files of 16 MiB each. If output after the first chunk is missing, it has rotated the log twice.
    const lost = async () => {
      assert.equal(await until(() => answer().catch(() => undefined), { timeoutMs: waitMs }), "here");
      const { dropped_bytes, lines } = await fixture.runtime.readOutput(key, first.cursor);
      return dropped_bytes > 0 && lines.length > 0 ? true : undefined;
    };
    assert.equal(await until(lost, { timeoutMs: waitMs }), true);
    const size = await runOk({
      file: "du",
      args: ["-sB1", "--apparent-size", join(fixture.engine.dir, "data", "containers")],
    });
    assert.ok(Number.parseInt(size.stdout, 10) < 40 * 1024 * 1024, size.stdout);
    for (const { id } of [flooder, neighbour]) await fixture.runtime.remove(id);
  });

  it("ends alone when it takes too much memory, and the report says why", async () => {
    const hog = "node -e 'const kept = []; for (;;) kept.push(Buffer.alloc(8 << 20, 1))'";
    const { result } = await runIn(hog);
    assert.deepEqual(result, { outcome: "exited", code: 137, out_of_memory: true });
  });

  it("starts no more processes than it may, and the machine starts others meanwhile", async () => {
    const bomb = "i=0; while [ $i -lt 200 ]; do sleep 20 & i=$((i+1)); done; echo all started";
    const { output } = await runIn(`sh -c '${bomb}' 2>&1 | tail -3`, {}, { timeoutMs: 10_000 });
    assert.doesNotMatch(output, /all started/);
    assert.equal((await runIn("echo fine")).output, "fine\n");
  });

  it("a fork bomb, a memory hog and a writer that fills its folder, as replicas: each is held or ended and named, and a neighbour answers every request", async () => {
    const hostile = { project_id: "prj_hostile", project_number: 914 };
    const prepare = async (id: string, script: string) => {
      const image_ref = await fixture.makeImage(hostile.project_id, { "server.js": script }, "node server.js");
      return workload({ id, ...hostile, image_ref });
    };
    // Starts again whenever one of its processes could not start.
    const bomb = `const { spawn } = require("node:child_process");
      const more = () => spawn("sh", ["-c", "sleep 999 & sleep 999"]).on("error", ({ code }) => console.log("ended by", code));
      setInterval(() => { for (let each = 0; each < 5; each += 1) more(); }, 20); ${server}`;
    const hog = "const kept = []; for (;;) kept.push(Buffer.alloc(8 << 20, 1));";
    const writer = `const fs = require("node:fs"); const file = fs.openSync("big", "w"); const block = Buffer.alloc(1 << 20);
      try { for (;;) fs.writeSync(file, block); } catch (error) { console.log("ended by", error.code); } ${server}`;
    const all = [await prepare("dep_bomb", bomb), await prepare("dep_hog", hog), await prepare("dep_writer", writer)];
    const neighbour = workload({ id: "dep_neighbour" });
    const { address } = await fixture.runtime.start(neighbour, { ordinal: 0, attempt: 1 });
    assert.ok(address);
    const answer = () => fetch(`http://${address.host}:${address.port}`).then((found) => found.text());
    assert.equal(await until(() => answer().catch(() => undefined), { timeoutMs: waitMs }), "here");
    const [bombed, hogged, wrote] = all as [Workload, Workload, Workload];
    for (const each of all) await fixture.runtime.start(each, { ordinal: 0, attempt: 1 });
    const answered = async <Found>(probe: () => Promise<Found | undefined>) =>
      until(
        async () => {
          assert.equal(await answer(), "here");
          return probe();
        },
        { timeoutMs: waitMs },
      );
    const exit = await answered(async () =>
      (await fixture.runtime.observe()).find(({ workload_id, exit: found }) => workload_id === hogged.id && found),
    );
    assert.deepEqual([exit?.exit?.code, exit?.exit?.out_of_memory], [137, true]);
    const said = async ({ id }: Workload) => {
      const { lines } = await fixture.runtime.readOutput({ workload_id: id, ordinal: 0, attempt: 1 }, null);
      return lines.find((line) => line.startsWith("ended by"));
    };
    assert.match((await answered(() => said(wrote))) ?? "", /^ended by (?:ENOSPC|EDQUOT)$/);
    assert.equal(await answered(() => said(bombed)), "ended by EAGAIN");
    assert.ok(processesOf(20_000 + hostile.project_number).length < 4 * limits.processes);
    for (const { id } of all) await fixture.runtime.remove(id);
    assert.deepEqual(processesOf(20_000 + hostile.project_number), []);
    await fixture.runtime.remove(neighbour.id);
  });

  it("fills its own folder to the limit and no further, and its neighbours have their own", async () => {
    const { output } = await runIn("head -c 100000000 /dev/zero > /app/big; echo; ls -l /app/big | awk '{print $5}'");
    const bytes = Number(output.trim().split("\n").at(-1));
    assert.ok(bytes > 10_000_000 && bytes < 64 * 1024 * 1024, output);
    assert.equal((await runIn("test ! -e /app/big && echo fine")).output, "fine\n");
  });

  // This test is the last one, because it removes the runtime's network.
  it("gets other addresses when another data folder took those of its runtime while that was stopped", async () => {
    const network = () =>
      `10.${128 + Number(readFileSync(join(fixture.root, "runtime", "address-block"), "utf8"))}.0.0/16`;
    const before = network();
    await fixture.reopen();
    assert.equal(network(), before);
    const runtime = await fixture.reopen();
    await runtime.dismantle();
    await runOk({ file: "ip", args: ["route", "add", "unreachable", before] });
    try {
      await fixture.reopen();
      assert.notEqual(network(), before);
    } finally {
      await runOk({ file: "ip", args: ["route", "del", "unreachable", before] });
    }
  });
});

/** The reason why this machine cannot resolve public names, or false. */
async function findsNoNames(): Promise<string | false> {
  return lookup(publicName).then(
    () => false,
    () => "SKIPPED: this machine finds no names of the world",
  );
}

/** Returns the processes of this user on this machine. */
function processesOf(uid: number): string[] {
  return readdirSync("/proc").filter((name) => {
    try {
      return /^\d+$/.test(name) && statSync(`/proc/${name}`).uid === uid;
    } catch {
      return false;
    }
  });
}

/** The reason why no container reaches another machine, or false. A test's engine does not change the machine's own firewall. */
async function forwardsNothing(): Promise<string | false> {
  const args = ["list", "chain", "ip", "filter", "FORWARD"];
  const rules = withoutDocker === false ? (await run({ file: "nft", args })).stdout : "";
  return rules.includes("policy drop") && "SKIPPED: the firewall of another Docker engine forwards nothing of this one";
}

/**
 * Creates a network namespace that represents another machine, with a server on port 80 at an address reserved for tests (RFC 5737,
 * TEST-NET-2).
 */
async function openWorld() {
  const name = `bworld${process.pid % 100_000}`;
  const pick = 4 * Math.floor(Math.random() * 63);
  const [near, far] = [`198.51.100.${pick + 1}`, `198.51.100.${pick + 2}`];
  const ip = (...args: readonly string[]) => runOk({ file: "ip", args });
  await ip("netns", "add", name);
  await ip("link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", name);
  await ip("addr", "add", `${near}/30`, "dev", name);
  await ip("link", "set", name, "up");
  for (const words of [`addr add ${far}/30 dev eth0`, "link set eth0 up", `route add default via ${near}`])
    await ip("-n", name, ...words.split(" "));
  const script = `require("node:net").createServer((socket) => socket.end()).listen(80, () => console.log("ready"))`;
  const server = start({ file: "ip", args: ["netns", "exec", name, process.execPath, "-e", script] }, {});
  await once(server.stdout, "data");
  return {
    ...{ near, far },
    async close() {
      server.kill("SIGKILL");
      await ip("link", "del", name);
      await ip("netns", "del", name);
    },
  };
}
