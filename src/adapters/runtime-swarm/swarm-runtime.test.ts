import assert from "node:assert/strict";
import { createServer, type AddressInfo, type Server } from "node:net";
import type { NetworkInterfaceInfo } from "node:os";
import { after, before, describe, it } from "node:test";
import { runsAll } from "../../../test/support/draw-cases.ts";
import { withoutDocker } from "../../../test/support/docker-engine.ts";
import { guardMs } from "../../../test/support/eventually.ts";
import type { TestMachine } from "../../../test/support/machines.ts";
import { withoutRegistry } from "../../../test/support/registry.ts";
import { until } from "../../kit/until.ts";
import { runtimeSuite } from "../../ports/runtime.suite.ts";
import type { Instance, Workload } from "../../ports/runtime.ts";
import { makeSwarm, type TestSwarm } from "../../../test/support/swarm.ts";

// Starting engines and filling a registry takes minutes. swarm-rules.test.ts tests the decisions without a swarm.
const skip =
  withoutDocker || withoutRegistry || (!runsAll && "SKIPPED: a Docker Swarm takes minutes; npm test -- --all runs it");

describe("a Docker swarm", { skip }, () => {
  runtimeSuite("the swarm runtime", () => makeSwarm(1));
});

const server = `
const [http, net, fs, os] = ["node:http", "node:net", "node:fs", "node:os"].map((name) => require(name));
const dial = (host, port, end) => {
  const socket = net.connect({ host, port, timeout: 2000 });
  socket.on("connect", () => { socket.destroy(); end("open"); });
  socket.on("error", (error) => end(error.code));
  socket.on("timeout", () => { socket.destroy(); end("timeout"); });
};
http.createServer((request, response) => {
  const { searchParams: asked } = new URL(request.url, "http://x");
  if (asked.has("host")) return dial(asked.get("host"), Number(asked.get("port")), (said) => response.end(said));
  if (asked.has("addresses")) return response.end(JSON.stringify(os.networkInterfaces()));
  response.end(fs.readFileSync("/proc/self/status", "utf8"));
}).listen(process.env.PORT);
console.log("ready");
process.on("SIGTERM", () => process.exit(0));
`;

const openPort = (listener: Server) =>
  new Promise<number>((resolve) => {
    listener.on("connection", (socket) => socket.on("error", () => {}).end());
    listener.listen(0, "0.0.0.0", () => resolve((listener.address() as AddressInfo).port));
  });

describe("a Docker swarm of three machines", { skip }, () => {
  let swarm: TestSwarm;
  let workload: Workload;
  const machineOf = (host: string) => swarm.machines.find(({ address }) => address === host) as TestMachine;
  const own = async () => (await swarm.runtime.observe()).toSorted((one, other) => one.ordinal - other.ordinal);
  const ask = (instance: Instance | undefined, query = "") =>
    fetch(`http://${instance?.address?.host}:${instance?.address?.port}/${query}`, {
      signal: AbortSignal.timeout(5000),
    }).then((answer) => answer.text());
  const answering = (instance: Instance | undefined) =>
    until(() => ask(instance).catch(() => undefined), { timeoutMs: guardMs });
  /** Waits until the swarm has this many instances in this state. */
  const eventuallyIn = async (state: Instance["state"], count: number) => {
    const found = async () => {
      const instances = await own().catch(() => []);
      return instances.filter((each) => each.state === state).length === count ? instances : undefined;
    };
    const instances = await until(found, { timeoutMs: guardMs });
    assert.ok(instances, `${count} instances are ${state}`);
    return instances;
  };
  const startAnew = (ended: readonly Instance[]) =>
    Promise.all(ended.map(({ ordinal, attempt }) => swarm.runtime.start(workload, { ordinal, attempt: attempt + 1 })));

  const listeners = [createServer(), createServer(), createServer()];
  /** Of an edge, of an open database server, and of a program that applications must not reach, such as the control plane. */
  const ports = { edge: 0, database: 0, closed: 0 };

  before(async () => {
    const opened = await Promise.all(listeners.map(openPort));
    Object.assign(ports, { edge: opened[0], database: opened[1], closed: opened[2] });
    swarm = await makeSwarm(3, undefined, (address) => ({
      edgePorts: [ports.edge],
      open: [{ address, port: ports.database }],
    }));
    const image_ref = await swarm.makeImage("prj_spread", { "server.js": server }, "node server.js");
    workload = {
      ...{ id: "dep_spread", project_id: "prj_spread", project_number: 931, process: "web", image_ref, port: 3000 },
      ...{ env: {}, limits: { memoryBytes: 128 * 1024 * 1024, processes: 64, cpus: 1 }, reach: [] },
      storage_access: "none",
    };
  });
  after(async () => {
    for (const listener of listeners) listener.close();
    await swarm?.close();
  });

  it("spreads replicas over all machines, from where their output comes", async () => {
    // A machine accepts replicas once its guard runs; the first start installs the guard.
    await swarm.runtime.start({ ...workload, id: "dep_first" }, { ordinal: 0, attempt: 1 });
    await swarm.runtime.remove("dep_first");
    assert.ok(await until(async () => (await swarm.guarded()) === 3 || undefined, { timeoutMs: guardMs }));
    await Promise.all([0, 1, 2, 3].map((ordinal) => swarm.runtime.start(workload, { ordinal, attempt: 1 })));
    const instances = await eventuallyIn("running", 4);
    for (const instance of instances) assert.ok(await answering(instance));
    const perMachine = Map.groupBy(instances, ({ address }) => address?.host);
    assert.deepEqual(
      [...perMachine.values()].map(({ length }) => length).toSorted((one, other) => one - other),
      [1, 1, 2],
    );
    for (const instance of instances)
      assert.deepEqual((await swarm.runtime.readOutput(instance, null)).lines, ["ready"]);
  });

  it("gives services the rights of containers, and keeps them from machines, registry and metadata", async () => {
    assert.ok((await swarm.runtime.describe()).isolation.includes("no_new_privileges"));
    const pooled = await swarm.runtime.machines?.list();
    assert.deepEqual(
      pooled?.map(({ state, guarded, takes_replicas }) => [state, guarded, takes_replicas]),
      Array.from({ length: 3 }, () => ["ready", true, true]),
    );
    assert.match((await swarm.runtime.machines?.joinScript()) ?? "", /END\ndocker swarm join --token SWMTKN-/);
    const instances = await own();
    const remote = instances.filter(({ address }) => address?.host !== swarm.machines[0]?.address);
    for (const instance of [instances[0], remote[0]]) {
      const status = await ask(instance);
      for (const line of [/CapBnd:\s+0+\n/, /NoNewPrivs:\s+1/, /Seccomp:\s+2/]) assert.match(status, line);
      const registry = `?host=${swarm.machines[0]?.address}&port=${swarm.registryPort}`;
      assert.equal(await ask(instance, registry), "EHOSTUNREACH");
      const neighbour = instances.find(({ address }) => address?.host !== instance?.address?.host);
      const elsewhere = `?host=${neighbour?.address?.host}&port=${neighbour?.address?.port}`;
      assert.equal(await ask(instance, elsewhere), "EHOSTUNREACH");
      assert.equal(await ask(instance, "?host=169.254.169.254&port=80"), "EHOSTUNREACH");
    }
  });

  it("reaches the edge and an open database server, but no other program of a machine and no other project's replica", async () => {
    const other = { id: "dep_other", project_id: "prj_other", project_number: 932 };
    const image_ref = await swarm.makeImage(other.project_id, { "server.js": server }, "node server.js");
    const victim = await swarm.runtime.start({ ...workload, ...other, image_ref }, { ordinal: 0, attempt: 1 });
    const interfaces = JSON.parse(
      (await until(() => ask(victim, "?addresses").catch(() => undefined), { timeoutMs: guardMs })) ?? "{}",
    ) as NodeJS.Dict<NetworkInterfaceInfo[]>;
    const own = Object.values(interfaces).flatMap((found = []) =>
      found.filter(({ internal, family }) => !internal && family === "IPv4"),
    );
    assert.ok(own.length > 0);
    const address = swarm.machines[0]?.address;
    const instances = await eventuallyIn("running", 5);
    const attackers = instances.filter(({ workload_id }) => workload_id === workload.id);
    const remote = attackers.find((each) => each.address?.host !== address);
    for (const attacker of [attackers.find((each) => each.address?.host === address), remote]) {
      const dial = (host: string | undefined, port: number | null | undefined) =>
        ask(attacker, `?host=${host}&port=${port}`);
      assert.deepEqual(
        [await dial(address, ports.edge), await dial(address, ports.database), await dial(address, ports.closed)],
        ["open", "open", "EHOSTUNREACH"],
      );
      assert.equal(await dial(victim.address?.host, victim.address?.port), "EHOSTUNREACH");
      for (const each of own) assert.notEqual(await dial(each.address, workload.port), "open", each.address);
    }
    await swarm.runtime.remove(other.id);
  });

  it("holds or ends a fork bomb, a memory hog and a writer without end, and its neighbours answer every request", async () => {
    const scripts = {
      bomb: `const { spawn } = require("node:child_process");
        const more = () => spawn("sh", ["-c", "sleep 999 & sleep 999"]).on("error", ({ code }) => console.log("ended by", code));
        setInterval(() => { for (let each = 0; each < 5; each += 1) more(); }, 20);`,
      hog: "const kept = []; for (;;) kept.push(Buffer.alloc(8 << 20, 1));",
      writer: `const { openSync, writeSync } = require("node:fs"); const file = openSync("/tmp/big", "w"); const block = Buffer.alloc(1 << 20);
        try { for (;;) writeSync(file, block); } catch (error) { console.log("ended by", error.code); } setInterval(() => {}, 1000);`,
    };
    const neighbours = (await own()).filter(({ workload_id }) => workload_id === workload.id);
    const project = { project_id: "prj_hostile", project_number: 933 };
    for (const [name, script] of Object.entries(scripts)) {
      const image_ref = await swarm.makeImage(project.project_id, { "server.js": script }, "node server.js");
      await swarm.runtime.start({ ...workload, ...project, id: `dep_${name}`, image_ref }, { ordinal: 0, attempt: 1 });
    }
    const besideNeighbours = <Found>(probe: () => Promise<Found | undefined>) =>
      until(
        async () => {
          for (const neighbour of neighbours) assert.match(await ask(neighbour), /^Name:/);
          return probe();
        },
        { timeoutMs: guardMs },
      );
    const exit = await besideNeighbours(
      async () => (await own()).find(({ workload_id }) => workload_id === "dep_hog")?.exit ?? undefined,
    );
    assert.equal(exit?.code, 137);
    const said = async (workload_id: string) => {
      const { lines } = await swarm.runtime.readOutput({ workload_id, ordinal: 0, attempt: 1 }, null);
      return lines.find((line) => line.startsWith("ended by"));
    };
    assert.equal(await besideNeighbours(() => said("dep_writer")), "ended by ENOSPC");
    assert.equal(await besideNeighbours(() => said("dep_bomb")), "ended by EAGAIN");
    for (const name of Object.keys(scripts)) await swarm.runtime.remove(`dep_${name}`);
    assert.deepEqual(
      (await own()).map(({ workload_id }) => workload_id),
      neighbours.map(() => workload.id),
    );
  });

  it("gives up the replicas of a machine that is cut off for 12 s, and of no other; they start elsewhere", async (t) => {
    const before = await own();
    const cut = before.find(({ address }) => address?.host !== swarm.machines[0]?.address)?.address?.host as string;
    const kept = before.filter(({ address }) => address?.host !== cut);
    await machineOf(cut).connect(false);
    const begun = Date.now();
    const lost = (await eventuallyIn("exited", before.length - kept.length)).filter(({ state }) => state === "exited");
    t.diagnostic(`given up after ${Date.now() - begun} ms`);
    const running = await startAnew(lost);
    t.diagnostic(`running again after ${Date.now() - begun} ms`);
    for (const instance of running) assert.notEqual(instance.address?.host, cut);
    for (const instance of [...kept, ...running]) assert.ok(await answering(instance));
    await until(() => Date.now() - begun > 12_000 || undefined, { timeoutMs: guardMs });
    await machineOf(cut).connect(true);
    const now = await eventuallyIn("running", 4);
    const seen = (all: readonly Instance[]) =>
      all.map(({ ordinal, attempt, address }) => ({ ordinal, attempt, address }));
    assert.deepEqual(seen(now), seen([...kept, ...running].toSorted((one, other) => one.ordinal - other.ordinal)));
  });

  it("keeps replicas whose engine was killed while they answer, and gives them up with their machine", async (t) => {
    const before = await own();
    const host = before.find(({ address }) => address?.host !== swarm.machines[0]?.address)?.address?.host as string;
    const machine = machineOf(host);
    await machine.end("SIGKILL");
    const isDown = async () => ((await swarm.stateOf(machine)) === "down" ? true : undefined);
    assert.ok(await until(isDown, { timeoutMs: guardMs }));
    assert.equal((await own()).filter(({ state }) => state === "running").length, before.length);
    await machine.connect(false);
    const begun = Date.now();
    const onIt = before.filter(({ address }) => address?.host === host);
    const lost = (await eventuallyIn("exited", onIt.length)).filter(({ state }) => state === "exited");
    for (const instance of await startAnew(lost)) assert.ok(await answering(instance));
    t.diagnostic(`running again after ${Date.now() - begun} ms`);
    await machine.connect(true);
    await machine.begin();
    assert.equal((await eventuallyIn("running", 4)).length, 4);
  });

  it("leaves replicas on other machines as they are while the manager's engine is started again", async () => {
    const before = await own();
    const others = before.filter(({ address }) => address?.host !== swarm.machines[0]?.address);
    const ends = new AbortController();
    const failures: string[] = [];
    const watching = (async () => {
      while (!ends.signal.aborted) {
        for (const instance of others) await ask(instance).catch((error: unknown) => failures.push(String(error)));
        const instances = await swarm.runtime.observe().catch(() => undefined);
        for (const { workload_id, ordinal, attempt } of others) {
          const now = instances?.find((each) => each.workload_id === workload_id && each.ordinal === ordinal);
          if (instances !== undefined && (now?.state !== "running" || now.attempt !== attempt))
            failures.push(`${ordinal}`);
        }
      }
    })();
    await (swarm.machines[0] as TestMachine).restart();
    const isBack = async () => ((await swarm.stateOf(swarm.machines[1] as TestMachine)) === "ready" ? true : undefined);
    assert.ok(await until(() => isBack().catch(() => undefined), { timeoutMs: guardMs }));
    ends.abort();
    await watching;
    assert.deepEqual(failures, []);
  });
});
