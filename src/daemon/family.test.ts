import assert from "node:assert/strict";
import { test } from "node:test";
import { builderDouble, instanceDouble, runtimeDouble } from "../../test/support/port-doubles.ts";
import type { BuildRequest } from "../ports/builder.ts";
import type { MachinePool } from "../ports/machines.ts";
import type { Workload } from "../ports/runtime.ts";
import { readConfig } from "./config.ts";
import { joinBuilders, joinRuntimes } from "./family.ts";

/** A runtime that records its calls and returns what the test gave it. */
function noted(name: string) {
  const calls: string[] = [];
  const running: string[] = [];
  let isDown = false;
  const runtime = runtimeDouble({
    start: async ({ id }) => (running.push(id), instanceDouble({ workload_id: id })),
    observe: async () => {
      if (isDown) throw new Error(`${name} does not answer`);
      return running.map((workload_id) => instanceDouble({ workload_id }));
    },
    stop: async (id) => void calls.push(`stop ${id}`),
    checkHealth: async ({ workload_id }) => (calls.push(`check ${workload_id}`), { outcome: "healthy" }),
    describe: async () => ({ name, network: "veth", isolation: ["seccomp", name], missing: [] }),
  });
  const image = {
    kind: "static",
    web_command: "",
    processes: {},
    release_command: null,
    size_bytes: 0,
    image_ref: `sha256:${name}`,
  };
  const builder = builderDouble({
    build: async () => ({ outcome: "built", image }),
    images: async () => [image.image_ref],
    isShortOfSpace: async () => name === "docker",
  });
  const end = () => (isDown = true);
  return { name, calls, end, runtime, builder };
}

const replica = { ordinal: 0, attempt: 1 };
const workload = (id: string, runtime?: string) => ({ id, ...(runtime === undefined ? {} : { runtime }) }) as Workload;

test("a workload starts in the runtime of its image, else in the first, and everything that follows goes there", async () => {
  const [process, docker] = [noted("process"), noted("docker")];
  const joined = joinRuntimes([process, docker]);
  await joined.start(workload("old"), replica);
  await joined.start(workload("moved", "docker"), replica);
  await joined.stop("moved", 1000);
  await joined.checkHealth({ workload_id: "old", ...replica });
  assert.deepEqual([process.calls, docker.calls], [["check old"], ["stop moved"]]);
  await assert.rejects(
    joined.start(workload("lost", "swarm"), replica),
    /the runtime swarm, which BERTH_RUNTIME lacks/,
  );
});

test("after a restart of the control plane a workload is found where it runs; one that runs nowhere is ended everywhere", async () => {
  const [process, docker] = [noted("process"), noted("docker")];
  await docker.runtime.start(workload("moved"), replica);
  const joined = joinRuntimes([process, docker]);
  await joined.checkHealth({ workload_id: "moved", ...replica });
  await joined.stop("gone", 1000);
  assert.deepEqual([process.calls, docker.calls], [["stop gone"], ["check moved", "stop gone"]]);
});

test("while one runtime does not answer, the other's instances are seen, and its own count as last seen", async () => {
  const [process, docker] = [noted("process"), noted("docker")];
  const joined = joinRuntimes([process, docker]);
  docker.end();
  await assert.rejects(joined.observe());
  const [first, second] = [noted("process"), noted("docker")];
  const both = joinRuntimes([first, second]);
  await both.start(workload("one"), replica);
  await both.start(workload("two", "docker"), replica);
  await both.observe();
  second.end();
  await both.start(workload("three"), replica);
  const ids = (await both.observe()).map(({ workload_id }) => workload_id);
  assert.deepEqual(ids, ["one", "three", "two"]);
});

test("only what all of them isolate is said to be isolated", async () => {
  const { name, isolation } = await joinRuntimes([noted("process"), noted("docker")]).describe();
  assert.deepEqual([name, isolation], ["process,docker", ["seccomp"]]);
});

test("an image says for which runtime it was built, images of all are found, and one short disk is enough", async () => {
  const joined = joinBuilders([noted("process"), noted("docker")]);
  const runtimeFor = async (runtime?: string) => {
    const built = await joined.build({ runtime } as BuildRequest);
    return built.outcome === "built" ? built.image.runtime : undefined;
  };
  assert.deepEqual(await Promise.all([runtimeFor(), runtimeFor("docker"), runtimeFor("gone")]), [
    ...["process", "docker", "process"],
  ]);
  assert.deepEqual(await joined.images("prj_x"), ["sha256:process", "sha256:docker"]);
  assert.equal(await joined.isShortOfSpace(), true);
});

test("two names of one runtime and builder count once, and the machines of a swarm are those of the whole", async () => {
  const [process, swarm] = [noted("process"), noted("swarm")];
  const machines = {} as MachinePool;
  Object.assign(swarm.runtime, { machines });
  const members = [process, { ...swarm, name: "docker" }, swarm] as const;
  const joined = joinRuntimes(members);
  assert.equal(joined.machines, machines);
  assert.equal((await joined.describe()).name, "process,docker,swarm");
  await joined.start(workload("here", "docker"), replica);
  await joined.start(workload("anywhere", "swarm"), replica);
  assert.deepEqual(
    (await joined.observe()).map(({ workload_id }) => workload_id),
    ["here", "anywhere"],
  );
  await joinRuntimes(members).stop("gone", 1000);
  assert.deepEqual([process.calls, swarm.calls], [["stop gone"], ["stop gone"]]);
  assert.deepEqual(await joinBuilders(members).images("prj_x"), ["sha256:process", "sha256:swarm"]);
});

test("BERTH_RUNTIME names each runtime once, in any order", () => {
  const read = (BERTH_RUNTIME?: string) => readConfig(BERTH_RUNTIME === undefined ? {} : { BERTH_RUNTIME }).runtimes;
  assert.deepEqual(
    [read(), read("swarm"), read("swarm, process,docker")],
    [["process"], ["swarm"], ["swarm", "process", "docker"]],
  );
  for (const wrong of ["podman", "process,podman", "docker,docker"])
    assert.throws(() => read(wrong), /BERTH_RUNTIME must be process or docker or swarm, or several/, wrong);
});
