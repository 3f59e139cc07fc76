import assert from "node:assert/strict";
import { createServer, type Server } from "node:net";
import { once } from "node:events";
import { after, describe, it } from "node:test";
import type { DockerApi, DockerCall } from "../../kit/docker-api.ts";
import type { Workload } from "../../ports/runtime.ts";
import { appBody } from "../../containers/container-bodies.ts";
import { labels } from "../../containers/settings.ts";
import { guardRules } from "./guard.ts";
import { emptyMemory, readReplicas } from "./replicas.ts";
import { attemptSpec } from "./attempt-spec.ts";
import { awaitMachine, awaitStarted, chooseMachine } from "./start-attempt.ts";
import type { SwarmContext } from "./settings.ts";
import { machineLabel, type SwarmNode, type SwarmAttempt } from "./swarm-api.ts";

type State = SwarmNode["Status"]["State"];

const node = (id: string, state: State = "ready", availability: "active" | "pause" | "drain" = "active") =>
  ({
    ID: id,
    Spec: { Availability: availability },
    Status: { State: state, Addr: "127.0.0.2" },
  }) as SwarmNode;

const service = (workload: string, machine: string, ordinal = 0) =>
  ({
    ...{ ID: `${workload}/${ordinal}`, CreatedAt: "2026-01-01T00:00:00Z" },
    Spec: {
      Name: `${workload}-${ordinal}`,
      Labels: { [labels.workload]: workload, [labels.ordinal]: String(ordinal), [machineLabel]: machine },
    },
  }) as unknown as SwarmAttempt;

describe("the machine for a replica", () => {
  const all = new Set(["a", "b", "c"]);
  const nodes = [node("a"), node("b"), node("c")];
  it("is the one with the fewest replicas of the workload, then of all", () => {
    const services = [service("mine", "a"), service("other", "b"), service("other", "b", 1)];
    assert.equal(chooseMachine("mine", nodes, { services, guarded: all }), "c");
    assert.equal(chooseMachine("other", nodes, { services, guarded: all }), "c");
    assert.equal(chooseMachine("mine", nodes, { services, guarded: all, without: "c" }), "b");
    assert.equal(chooseMachine("mine", [node("c")], { services, guarded: all, without: "c" }), "c");
    assert.equal(chooseMachine("third", nodes, { services, guarded: new Set(["a", "b"]) }), "a");
  });
  it("is none that is down, takes no tasks or has no guard", () => {
    const given = [node("a", "down"), node("b", "ready", "drain"), node("c"), node("d", "ready", "pause"), node("e")];
    assert.equal(chooseMachine("mine", given, { services: [], guarded: new Set(["a", "b", "c", "d"]) }), "c");
    assert.throws(
      () => chooseMachine("mine", given, { services: [], guarded: new Set() }),
      /none of the swarm's 5 machines takes replicas/,
    );
  });
  it("is chosen once no machine is unknown, as all are to a new leader at first", async () => {
    const reads = [
      [node("a", "down"), node("b", "unknown"), node("c")],
      [node("a", "down"), node("b"), node("c")],
    ];
    const call = async ({ path }: DockerCall) =>
      path === "/nodes" ? (reads.length > 1 ? reads.shift() : reads[0]) : [service("mine", "c")];
    const context = { managers: { call } as unknown as DockerApi, tag: "test" } as SwarmContext;
    assert.equal(await awaitMachine(context, "mine", { guarded: all, without: null }), "b");
  });
});

describe("replicas of machines that may be lost", () => {
  const servers: Server[] = [];
  after(() => {
    for (const each of servers) each.close();
  });
  const taskOf = ({ ID: id, Spec: spec }: SwarmAttempt, port: number) => ({
    ...{ ID: `task ${id}`, ServiceID: id, NodeID: spec.Labels[machineLabel], CreatedAt: "", DesiredState: "running" },
    Status: { State: "running", Timestamp: "", PortStatus: { Ports: [{ PublishedPort: port }] } },
  });
  const look = async (nodes: readonly SwarmNode[], port: number, memory = emptyMemory()) => {
    const services = nodes.map(({ ID: id }) => service(`on ${id}`, id));
    const tasks = services.map((each) => taskOf(each, port));
    const answers: Readonly<Record<string, unknown>> = { "/services": services, "/tasks": tasks, "/nodes": nodes };
    const managers = { call: async ({ path }: DockerCall) => answers[path] } as unknown as DockerApi;
    const replicas = await readReplicas({ managers, tag: "test" } as SwarmContext, memory);
    return replicas.flatMap(({ exit, node: machine }) => (exit === null ? [] : [machine?.ID]));
  };
  const listen = async () => {
    const server = createServer().listen(0, "127.0.0.2");
    servers.push(server);
    await once(server, "listening");
    return (server.address() as { port: number }).port;
  };
  const states = (...given: readonly State[]) => given.map((state, index) => node(`m${index}`, state));

  it("are given up where the machine is down and they do not answer, and stay given up", async () => {
    const port = await listen();
    servers.pop()?.close();
    const memory = emptyMemory();
    assert.deepEqual(await look(states("ready", "down", "unknown", "disconnected"), port, memory), ["m1"]);
    assert.deepEqual(await look(states("ready", "ready", "ready"), port, memory), ["m1"]);
  });
  it("are given up where a new leader knows no state of the machine, but does not reach its manager", async () => {
    const isManager = (each: SwarmNode, Reachability: string) => ({
      ...each,
      ManagerStatus: { Addr: "", Reachability },
    });
    const [first, second, third] = states("ready", "unknown", "unknown") as [SwarmNode, SwarmNode, SwarmNode];
    const nodes = [first, isManager(second, "unreachable"), isManager(third, "reachable")];
    assert.deepEqual(await look(nodes, 1), ["m1"]);
    assert.deepEqual(await look(nodes, await listen()), []);
  });
  it("are kept while they answer: an engine that ended leaves them running", async () => {
    assert.deepEqual(await look(states("ready", "down", "ready"), await listen()), []);
  });
  it("keep the address that they had when their machine reports them without it, as it does to a new leader", async () => {
    const services = [service("mine", "m0")];
    const told = taskOf(services[0] as SwarmAttempt, 3000);
    const tasks = [told, { ...told, Status: { ...told.Status, PortStatus: {} } }];
    const memory = emptyMemory();
    const addressAs = async (task: object | undefined) => {
      const answers: Readonly<Record<string, unknown>> = {
        ...{ "/services": services, "/tasks": [task], "/nodes": [node("m0")] },
      };
      const managers = { call: async ({ path }: DockerCall) => answers[path] } as unknown as DockerApi;
      return (await readReplicas({ managers, tag: "test" } as SwarmContext, memory))[0]?.address;
    };
    for (const task of tasks) assert.deepEqual(await addressAs(task), { host: "127.0.0.2", port: 3000 });
  });
  it("are not waited for while they start on a machine that goes down", async () => {
    const tasks = [{ ...taskOf(service("mine", "m1"), 1), Status: { State: "preparing", Timestamp: "" } }];
    const answers: Readonly<Record<string, unknown>> = { "/tasks": tasks, "/nodes": states("ready", "down") };
    const managers = { call: async ({ path }: DockerCall) => answers[path] } as unknown as DockerApi;
    assert.equal(await awaitStarted({ managers, tag: "test" } as SwarmContext, "mine"), "its machine is down");
  });
  it("that a machine refuses are no crash of the application", async () => {
    const outcomes = [
      "starting container failed: error creating vxlan interface: file exists",
      "task: non-zero exit (1)",
    ];
    const told = outcomes.map(async (said) => {
      const tasks = [{ ...taskOf(service("mine", "m1"), 1), Status: { State: "failed", Timestamp: "", Err: said } }];
      const managers = { call: async () => tasks } as unknown as DockerApi;
      return awaitStarted({ managers, tag: "test" } as SwarmContext, "mine");
    });
    assert.deepEqual(await Promise.all(told), [outcomes[0], undefined]);
  });
  it("are out of memory only if their machine's engine says so, whom SIGKILL ended", async () => {
    const services = ["memory", "signal", "elsewhere"].map((name) => service(name, "m0"));
    const status = { State: "failed", Timestamp: "" };
    const tasks = services.map((each) => ({
      ...taskOf(each, 1),
      Status: { ...status, ContainerStatus: { ContainerID: each.Spec.Name, ExitCode: 137 } },
    }));
    const answers: Readonly<Record<string, unknown>> = {
      ...{ "/services": services, "/tasks": tasks, "/nodes": [node("m0")] },
      "/containers/memory-0/json": { State: { OOMKilled: true } },
      "/containers/signal-0/json": { State: { OOMKilled: false } },
    };
    const call = async ({ path }: DockerCall) => answers[path] ?? Promise.reject(new Error("no such container"));
    const engine = { call } as unknown as DockerApi;
    const context = { managers: engine, engines: [engine], tag: "test" } as unknown as SwarmContext;
    const memory = emptyMemory();
    const exits = async () =>
      (await readReplicas(context, memory)).map(({ exit }) => [exit?.code, exit?.out_of_memory]);
    const expected = [true, false, false].map((isMemory) => [137, isMemory]);
    assert.deepEqual(await exits(), expected);
    // The engine may be gone later.
    const [later] = await readReplicas({ ...context, engines: [] }, memory);
    assert.equal(later?.exit?.out_of_memory, true);
  });
  it("are kept when most machines are lost at once, because then this one is", async () => {
    assert.deepEqual(await look(states("ready", "down", "down"), 1), []);
  });
});

interface Spec {
  readonly TaskTemplate: {
    readonly ContainerSpec: Readonly<Record<string, unknown>> & {
      readonly Mounts: readonly { readonly Type: string; readonly Target: string }[];
    };
    readonly Resources: { readonly Limits: object };
    readonly RestartPolicy: object;
    readonly Placement: object;
  };
  readonly EndpointSpec: object;
  readonly Mode: object;
}

describe("the service of a replica", () => {
  const workload = {
    ...{ id: "dep_1", process: "web", project_id: "prj_1", project_number: 7, image_ref: "sha256:1", port: 3000 },
    ...{ env: { GREETING: "hello" }, limits: { memoryBytes: 2 ** 28, processes: 64, cpus: 1.5 }, reach: [] },
    storage_access: "none",
  } as const satisfies Workload;
  const image = {
    ...{ id: "sha256:1", workingDir: "/app", env: {}, volumes: ["/data"], check: null, user: "node" },
    manifest: {
      format: 1,
      kind: "node",
      web_command: "",
      uses_own_command: false,
      processes: {},
      release_command: null,
    },
  } as const;
  const body = appBody({
    ...{ workload, image, uid: 20_007, labels: { [labels.runtime]: "t" }, network: "", storageDir: null, volumes: [] },
    ...{ tree: { folder: null, passwd: null, group: 44 }, folders: ["/var/log/nginx"], certificates: null },
    ...{ processors: 4, ociRuntime: null, command: "node server.js" },
  });
  const plan = { name: "s", image: "r/i@sha256:2", files: [], network: "n", nameServers: [], machine: "m1" };
  const spec = attemptSpec(body, { ...plan, port: 3000, labels: { [labels.runtime]: "t" } }) as Spec;
  const container = spec.TaskTemplate.ContainerSpec;

  it("has what isolates a container, and no label by which an engine would take it for one of its own", () => {
    const { HostConfig: host } = body;
    assert.deepEqual(
      [container.CapabilityDrop, container.ReadOnly, container.Init, container.Ulimits, container.User],
      [["ALL"], true, true, host.Ulimits, "20007:20007"],
    );
    assert.deepEqual(
      [container.Privileges, container.Groups, container.Labels],
      [{ NoNewPrivileges: true }, ["44"], {}],
    );
    assert.deepEqual(spec.TaskTemplate.Resources.Limits, { NanoCPUs: 1.5e9, MemoryBytes: 2 ** 28, Pids: 64 });
    const memory = container.Mounts.map(({ Type: type, Target: path }) => [type, path]);
    assert.deepEqual(
      memory,
      Object.keys(host.Tmpfs).map((path) => ["tmpfs", path]),
    );
    for (const path of ["/tmp", "/data", "/var/log/nginx"]) assert.ok(path in host.Tmpfs, path);
  });
  it("is started by Berth alone, on the machine that Berth chose, with a port of that machine", () => {
    assert.deepEqual(
      [spec.TaskTemplate.RestartPolicy, spec.TaskTemplate.Placement, spec.EndpointSpec, spec.Mode],
      [
        { Condition: "none" },
        { Constraints: ["node.id==m1"] },
        { Mode: "dnsrr", Ports: [{ Protocol: "tcp", TargetPort: 3000, PublishMode: "host" }] },
        { Replicated: { Replicas: 1 } },
      ],
    );
  });
});

describe("the guard's rules", () => {
  const given = { table: "t", resolvers: ["10.0.0.2"], machines: ["192.0.2.1", "192.0.2.2"], edges: ["192.0.2.9"] };
  const rules = guardRules({ ...given, edgePorts: [443], open: [{ address: "192.0.2.2", port: 5432 }] });
  it("close machines, private networks and metadata to containers, and replicas to all but machines and edges", () => {
    for (const line of [
      /iifname "docker_gwbridge" reject/,
      /ip daddr { 192.0.2.1, 192.0.2.2, 192.0.2.9 } reject/,
      /10.64.0.0\/10, .*169.254.0.0\/16.* } reject/,
      /{ 10.0.0.0\/8, .*192.168.0.0\/16 } reject/,
      /oifname "docker_gwbridge" ip saddr != { 192.0.2.1, 192.0.2.2, 192.0.2.9 } reject/,
      /ip daddr { 10.0.0.2 } meta l4proto { tcp, udp } th dport 53 accept/,
      /ip daddr . tcp dport { 192.0.2.2 . 5432 } accept/,
      /tcp dport { 443 } ip daddr { 192.0.2.1, 192.0.2.2, 192.0.2.9 } accept/,
    ])
      assert.match(rules, line);
  });
});
