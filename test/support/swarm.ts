import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { importMinimalImage } from "./docker-engine.ts";
import { freePort } from "./free-port.ts";
import { startMachines, type TestMachine, type TestMachines } from "./machines.ts";
import { createDockerRuntime } from "../../src/adapters/runtime-docker/docker-runtime.ts";
import { commitImage } from "./commit-image.ts";
import type { RuntimeFixture } from "../../src/ports/runtime.suite.ts";
import { addressOf, listNodes, listTasks } from "../../src/adapters/runtime-swarm/swarm-api.ts";
import { tagOf, type DockerRuntimeOptions } from "../../src/containers/settings.ts";
import type { ImageRegistry } from "../../src/adapters/runtime-swarm/image-registry.ts";
import { createOwnRegistry } from "../../src/adapters/runtime-swarm/own-registry.ts";
import { createSwarmRuntime, type SwarmRuntime } from "../../src/adapters/runtime-swarm/swarm-runtime.ts";

/** A swarm with a runtime in a temporary data folder; `close` removes everything from the machine. */
export interface TestSwarm extends RuntimeFixture {
  readonly runtime: SwarmRuntime;
  readonly machines: readonly TestMachine[];
  readonly root: string;
  readonly registryPort: number;
  /** Number of machines with a running guard task. */
  guarded(): Promise<number>;
  /** The machine's state as the swarm reports it. */
  stateOf(machine: TestMachine): Promise<string | undefined>;
  reopen(): Promise<SwarmRuntime>;
}

/** The ports that applications may reach on the machines. */
export type OpenedPorts = Pick<DockerRuntimeOptions, "edgePorts" | "open">;

/** Creates a swarm of `count` machines, with the given registry or Berth's own. `openPorts` receives the address of the first machine. */
export async function makeSwarm(
  count: number,
  given?: ImageRegistry,
  openPorts: (address: string) => OpenedPorts = () => ({}),
): Promise<TestSwarm> {
  const cluster: TestMachines = await startMachines(count);
  const [first] = cluster.machines as readonly [TestMachine];
  const engine = { managers: first.api };
  const root = mkdtempSync(join(tmpdir(), "berth-swarm-"));
  const registryPort = await freePort();
  const own = createOwnRegistry({
    ...{ dir: join(root, "registry"), program: "/usr/bin/docker-registry", port: registryPort },
    address: async () => cluster.address,
  });
  const registry = given ?? own;
  const base = await importMinimalImage(first.api);
  // Without a name, the engine would remove the base image together with the last image built on it.
  await first.api.call({ method: "POST", path: `/images/${base}/tag`, query: { repo: "test/base" } });
  const runtimes: SwarmRuntime[] = [];
  const open = async () => {
    for (const runtime of runtimes.splice(0)) runtime.close();
    const local = await createDockerRuntime({
      ...{ socketPath: first.socket, stateDir: join(root, "runtime") },
      storageDir: (projectId: string) => join(root, "storage", projectId),
      ...openPorts(cluster.address),
    });
    const runtime = createSwarmRuntime(local, { registry, edgeAddresses: [cluster.address] });
    runtimes.push(runtime);
    return runtime;
  };
  return {
    ...{ machines: cluster.machines, root, registryPort, runtime: await open(), reopen: open },
    stateOf: async ({ address }) => (await listNodes(engine)).find((node) => addressOf(node) === address)?.Status.State,
    guarded: async () =>
      (await listTasks(engine, `berth-${tagOf(join(root, "runtime"))}-guard`)).filter(
        ({ Status: status }) => status.State === "running",
      ).length,
    workload: { storage_access: "none" },
    makeImage: (projectId, files, web_command, { processes = {} } = {}) =>
      commitImage(first, { base, projectId, files }, { web_command, processes }),
    async close() {
      for (const runtime of runtimes.splice(0)) {
        for (const { workload_id } of await runtime.observe()) await runtime.remove(workload_id);
        await runtime.dismantle();
        runtime.close();
      }
      await own.close();
      await cluster.close();
      rmSync(root, { recursive: true, force: true });
    },
  };
}
