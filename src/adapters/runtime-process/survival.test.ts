import assert from "node:assert/strict";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { startNode } from "../../../test/support/node-process.ts";
import { start } from "../../kit/exec.ts";
import { identify, isAlive, processIds, sendSignal } from "../../kit/processes.ts";
import { until } from "../../kit/until.ts";
import type { Instance, Workload } from "../../ports/runtime.ts";
import { currentBoot, type InstanceFolder } from "./instance-folder.ts";
import { InstanceFolders } from "./instance-folders.ts";
import { toInstance } from "./observe-instance.ts";
import type { ProcessRuntime } from "./process-runtime.ts";
import { readProcessTree } from "../../kit/process-tree.ts";
import { makeGround, type TestGround } from "../../../test/support/runtime-ground.ts";
import { guardMs } from "../../../test/support/eventually.ts";

const server = `
const http = require("node:http");
http.createServer((request, response) => {
  if (request.url === "/crash") process.exit(42);
  if (request.url === "/eat") { const all = []; setInterval(() => all.push(Buffer.alloc(16e6, 1)), 1); }
  if (request.url === "/flood") setInterval(() => process.stdout.write(("y".repeat(99) + "\\n").repeat(5000)), 50);
  response.end(String(process.pid));
}).listen(process.env.PORT);`;
const waitMs = guardMs;
const first = { ordinal: 0, attempt: 1 };

/** Returns the processes of this machine that sleep for this time. */
function processesWith(mark: string): readonly number[] {
  return processIds().filter((pid) => {
    try {
      return readFileSync(`/proc/${pid}/cmdline`, "utf8") === `sleep\0${mark}\0`;
    } catch {
      return false;
    }
  });
}

describe("applications of the process runtime", () => {
  const root = mkdtempSync(join(tmpdir(), "berth-survival-"));
  let ground: TestGround;
  let runtime: ProcessRuntime;
  let image: string;
  let count = 0;
  const workload = (more: Partial<Workload> = {}): Workload => ({
    ...{
      id: `dep_survival${(count += 1)}`,
      project_id: "prj_survival",
      project_number: 902,
      process: "web",
      image_ref: image,
      port: 3000,
      env: {},
    },
    limits: { memoryBytes: 128 * 1024 * 1024, processes: 64, cpus: 1 },
    reach: [],
    storage_access: "open",
    ...more,
  });
  const stateDir = join(root, "private", "data", "runtime");
  const shimOf = (id: string) => {
    const shim = new InstanceFolders(stateDir).latestOf(id, 0)?.shim();
    assert.ok(shim);
    return shim;
  };
  before(async () => {
    ground = await makeGround({ root });
    runtime = await ground.open();
    image = await ground.makeImage("prj_survival", { "server.js": server }, "node server.js");
  });
  after(async () => {
    await ground.close();
    rmSync(root, { recursive: true, force: true });
  });

  it("leave no process of a terminal behind when the control plane is killed", async (t) => {
    const mark = `86${process.pid}`;
    const script = join(import.meta.dirname, "../../../test/support/terminal-plane-process.ts");
    const command = `sleep ${mark} & echo begun; exec sleep ${mark}`;
    runtime.close();
    const plane = startNode([script, root, JSON.stringify(workload()), command]);
    t.after(() => plane.kill("SIGKILL"));
    await once(plane.stdout, "data");
    // The shell prints the mark before it becomes the second process.
    assert.ok(await until(() => processesWith(mark).length >= 2 || undefined, { timeoutMs: waitMs }), "none began");
    plane.kill("SIGKILL");
    await once(plane, "close");
    const left = () => processesWith(mark).length;
    assert.ok(await until(async () => left() === 0 || undefined, { timeoutMs: waitMs }), `${left()} are left`);
    runtime = await ground.open();
  });

  it("answer every request while the control plane is killed, and the next one adopts them and learns their exit codes", async () => {
    const wanted = workload();
    runtime.close();
    const script = join(import.meta.dirname, "../../../test/support/control-plane-process.ts");
    const plane = startNode([script, root, JSON.stringify(wanted)]);
    await once(plane.stdout, "data");
    const folder = new InstanceFolders(stateDir).latestOf(wanted.id, 0) as InstanceFolder;
    const instance = toInstance(folder, undefined);
    const pid = await ask(instance);
    plane.kill("SIGKILL");
    await once(plane, "close");
    for (let request = 0; request < 20; request += 1) assert.equal(await ask(instance), pid);
    await ask(instance, "/crash").catch(() => {});
    await until(() => (isAlive(shimOf(wanted.id)) ? undefined : true), { timeoutMs: waitMs });
    runtime = await ground.open();
    const [ended] = await instancesOf(runtime, wanted.id);
    assert.deepEqual([ended?.state, ended?.exit?.code, ended?.attempt], ["exited", 42, 1]);
    await runtime.remove(wanted.id);
  });

  it("die with their shim, are reported as vanished, and can be started again", async () => {
    const wanted = workload();
    await ask(await runtime.start(wanted, first));
    const shim = shimOf(wanted.id);
    const below = readProcessTree()
      .descendantsOf(shim.pid)
      .map(({ pid }) => pid);
    process.kill(shim.pid, "SIGKILL");
    const ended = await exited(runtime, wanted.id);
    assert.deepEqual([ended.exit?.code, ended.exit?.out_of_memory], [null, false]);
    await ask(await runtime.start(wanted, { ordinal: 0, attempt: 2 }));
    const alive = new Set(
      readProcessTree()
        .descendantsOf(1)
        .map(({ pid }) => pid),
    );
    assert.deepEqual(
      below.filter((pid) => alive.has(pid)),
      [],
    );
    await runtime.remove(wanted.id);
  });

  it("did not crash when everything of the service is asked to end, as systemd does, but did when only they are", async (t) => {
    if (!ground.sandbox.describe().isolation.includes("namespaces"))
      return t.skip("without namespaces an application could pretend that");
    const wanted = workload();
    const endedBy = async (attempt: number, withShim: boolean) => {
      await ask(await runtime.start(wanted, { ordinal: 0, attempt }));
      const shim = shimOf(wanted.id);
      const below = readProcessTree().descendantsOf(shim.pid);
      const asked = withShim ? [shim, ...below] : below;
      // One ends with the other, so some are gone.
      for (const each of asked.map(({ pid }) => identify(pid))) if (each !== undefined) sendSignal(each, "SIGTERM");
      // The code is that of whichever process ends first: pasta, which carries the network of an ordinary user, answers SIGTERM with 0.
      return (await exited(runtime, wanted.id)).exit?.stopped;
    };
    assert.equal(await endedBy(1, true), true);
    assert.equal(await endedBy(2, false), undefined);
    await runtime.remove(wanted.id);
  });

  it("are reported as out of memory when they take more than their limit", async () => {
    const wanted = workload();
    await ask(await runtime.start(wanted, first), "/eat").catch(() => {});
    const ended = await exited(runtime, wanted.id);
    assert.equal(ended.exit?.out_of_memory, true);
    await ask(await runtime.start(wanted, { ordinal: 0, attempt: 2 }), "/crash").catch(() => {});
    assert.deepEqual(
      [(await exited(runtime, wanted.id)).exit?.code, (await exited(runtime, wanted.id)).exit?.out_of_memory],
      [42, false],
    );
    await runtime.remove(wanted.id);
  });

  it("cannot fill the disk with output that nobody reads", async () => {
    runtime = await ground.open({ maxOutputBytes: 4_000_000 });
    const wanted = workload();
    const instance = await runtime.start(wanted, first);
    await ask(instance, "/flood");
    const output = join(stateDir, "live", wanted.id, "0", "1", "output");
    const capped = await until(
      () => (statSync(output).size > 20_000_000 && statSync(output).blocks * 512 < 10_000_000) || undefined,
      { timeoutMs: waitMs },
    );
    assert.ok(capped, "old output is freed");
    const chunk = await runtime.readOutput(instance, "0");
    assert.ok(chunk.dropped_bytes > 0 && (chunk.lines.at(-1) as string).startsWith("y"));
    await runtime.remove(wanted.id);
  });

  it("finish on SIGTERM also behind a shell that waits for them", async () => {
    const script = `process.on("SIGTERM", () => { console.log("finished"); process.exit(0); }); require("http").createServer((q, r) => r.end()).listen(process.env.PORT);`;
    const wanted = workload({
      image_ref: await ground.makeImage(
        "prj_survival",
        { "server.js": script },
        "cd . && node server.js; echo shell ended with $?",
      ),
    });
    const instance = await runtime.start(wanted, first);
    await ask(instance);
    await runtime.stop(wanted.id, waitMs);
    assert.deepEqual((await runtime.readOutput(instance, null)).lines, ["finished", "shell ended with 0"]);
    await runtime.remove(wanted.id);
  });

  it("whose folder a crash left empty are forgotten at the next start", async () => {
    const leftOver = join(stateDir, "live", "dep_empty");
    mkdirSync(leftOver);
    runtime = await ground.open();
    assert.equal(existsSync(leftOver), false);
  });

  it("that a crash left half started count as vanished, and their shim never starts", async () => {
    const folders = new InstanceFolders(stateDir);
    const started_at = new Date(Date.now() - 60_000).toISOString();
    const record = {
      workload_id: "dep_half",
      ordinal: 0,
      attempt: 1,
      project_id: "prj_survival",
      image_ref: image,
      sandbox_id: "run-half",
      boot_id: currentBoot(),
    };
    const folder = folders.claim({ ...record, started_at, limits: workload().limits, address: null }, 0);
    runtime = await ground.open();
    const [half] = await instancesOf(runtime, "dep_half");
    assert.deepEqual([half?.state, half?.exit?.code], ["exited", null]);
    const shim = start({
      file: join(import.meta.dirname, "shim.sh"),
      args: [folder.path, "/bin/echo", "started"],
    });
    const said: Buffer[] = [];
    shim.stdout.on("data", (chunk: Buffer) => said.push(chunk));
    await once(shim, "close");
    assert.deepEqual(said, []);
    assert.equal((await runtime.start(workload({ id: "dep_half" }), { ordinal: 0, attempt: 2 })).state, "running");
    await runtime.remove("dep_half");
  });
});

/** Repeats a request until the instance answers: where pasta forwards the port, a successful connection proves nothing. */
async function ask(instance: Instance | undefined, path = "/"): Promise<string> {
  assert.ok(instance?.address, "the instance has an address");
  const origin = `http://${instance.address.host}:${instance.address.port}`;
  const answer = await until(
    () =>
      fetch(origin).then(
        (response) => response.text(),
        () => undefined,
      ),
    { timeoutMs: waitMs },
  );
  assert.ok(answer !== undefined, "the instance answers");
  return path === "/" ? answer : (await fetch(origin + path)).text();
}

async function instancesOf(runtime: ProcessRuntime, workloadId: string): Promise<readonly Instance[]> {
  return (await runtime.observe()).filter(({ workload_id }) => workload_id === workloadId);
}

async function exited(runtime: ProcessRuntime, workloadId: string): Promise<Instance> {
  const found = await until(
    async () => (await instancesOf(runtime, workloadId)).find((each) => each.state === "exited"),
    {
      timeoutMs: waitMs,
    },
  );
  assert.ok(found, "the instance has ended");
  return found;
}
