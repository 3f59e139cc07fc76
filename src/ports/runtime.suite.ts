import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { until } from "../kit/until.ts";
import type { Instance, Runtime, Workload, OneOffCommand } from "./runtime.ts";

/** What an adapter brings to be tried: a runtime with nothing in it, and ways to make images and to start the runtime anew on the same state. */
export interface RuntimeFixture {
  readonly runtime: Runtime;
  /** An image with these files in its working folder; `node` and a POSIX shell are there. Answers its `image_ref`. */
  makeImage(projectId: string, files: Readonly<Record<string, string>>, webCommand: string): Promise<string>;
  /** The runtime as a control plane that was just started finds it. The one before is no longer used. */
  reopen(): Promise<Runtime>;
  close(): Promise<void>;
}

const server = `
const http = require("node:http");
const fs = require("node:fs");
console.log("started with", process.env.GREETING);
process.on("SIGTERM", () => { console.log("got TERM"); setTimeout(() => process.exit(0), 50); });
http.createServer((request, response) => {
  if (request.url === "/crash") process.exit(42);
  if (request.url === "/line") console.log(request.headers["x-line"]);
  if (request.url === "/storage") fs.appendFileSync(process.env.STORAGE_DIR + "/visits", "x");
  const storage = fs.existsSync(process.env.STORAGE_DIR + "/visits") ? fs.readFileSync(process.env.STORAGE_DIR + "/visits", "utf8") : "";
  response.end(JSON.stringify({ pid: process.pid, greeting: process.env.GREETING, host: process.env.HOST, storage }));
}).listen(Number(process.env.PORT), process.env.HOST);
`;
const stubborn = `process.on("SIGTERM", () => {}); require("node:http").createServer((q, r) => r.end("{}")).listen(Number(process.env.PORT));`;
// Leaves its process group and closes nothing, as daemons of the old kind do.
const daemon = `require("node:child_process").spawn(process.execPath, ["-e", "setInterval(() => console.log('still here'), 20)"], { detached: true, stdio: "inherit" }).unref(); ${stubborn}`;
const graceMs = 10_000;
const waitMs = 30_000;

/** States what every runtime promises. Registers tests; `makeFixture` is called once. */
export function runtimeSuite(name: string, makeFixture: () => Promise<RuntimeFixture>): void {
  describe(`${name} keeps the promises of a runtime`, () => {
    let fixture: RuntimeFixture;
    let runtime: Runtime;
    let image: string;
    let count = 0;
    const project = `prj_suite`;
    const workload = (more: Partial<Workload> = {}): Workload => ({
      id: `dep_suite${(count += 1)}`,
      project_id: project,
      project_number: 901,
      image_ref: image,
      replicas: 1,
      port: 3000,
      env: { GREETING: "hello" },
      limits: { memoryBytes: 256 * 1024 * 1024, processes: 64, cpus: 1 },
      reach: [],
      storage_access: "open",
      ...more,
    });
    const task = (command: string): OneOffCommand => ({
      ...{ command, timeoutMs: waitMs, silenceMs: waitMs, signal: new AbortController().signal, onOutput: () => {} },
    });
    before(async () => {
      fixture = await makeFixture();
      runtime = fixture.runtime;
      image = await fixture.makeImage(project, { "server.js": server }, "node server.js");
    });
    after(async () => {
      for (const id of await runtime.list()) await runtime.remove(id);
      await fixture.close();
    });

    it("starts as many instances as the workload has replicas, each reachable at its address with the environment given", async () => {
      const wanted = workload({ replicas: 2 });
      await runtime.apply(wanted);
      const instances = await runtime.observe(wanted.id);
      assert.deepEqual(
        instances.map((each) => [each.ordinal, each.attempt, each.state, each.exit]),
        [
          [0, 1, "running", null],
          [1, 1, "running", null],
        ],
      );
      const answers = await Promise.all(instances.map((instance) => answerOf(instance)));
      // On the host's network other addresses than the loopback's would be open to everybody.
      const everywhere = (await runtime.describe()).network === "shared" ? "127.0.0.1" : "0.0.0.0";
      assert.deepEqual(
        answers.map(({ greeting, host }) => [greeting, host]),
        [
          ["hello", everywhere],
          ["hello", everywhere],
        ],
      );
      assert.ok((await runtime.list()).includes(wanted.id));
      await runtime.remove(wanted.id);
    });

    it("changes nothing when the same workload is applied again, even twice at once", async () => {
      const wanted = workload({ replicas: 2 });
      await Promise.all([runtime.apply(wanted), runtime.apply(wanted)]);
      const first = await runtime.observe(wanted.id);
      await runtime.apply(wanted);
      assert.deepEqual(await runtime.observe(wanted.id), first);
      assert.equal(first.length, 2);
      await runtime.remove(wanted.id);
    });

    it("adds and ends replicas without touching the others, and never gives a start's number twice", async () => {
      const wanted = workload({ replicas: 2 });
      await runtime.apply(wanted);
      const [kept] = await runtime.observe(wanted.id);
      await runtime.apply({ ...wanted, replicas: 1 });
      assert.deepEqual(await runtime.observe(wanted.id), [kept]);
      await runtime.apply({ ...wanted, replicas: 2 });
      const [same, added] = await runtime.observe(wanted.id);
      assert.deepEqual(same, kept);
      assert.deepEqual([added?.ordinal, added?.attempt], [1, 2]);
      await runtime.remove(wanted.id);
    });

    it("reports an exit with its code, leaves the instance exited, and restarts it only when told to", async () => {
      const wanted = workload();
      await runtime.apply(wanted);
      const [instance] = await runtime.observe(wanted.id);
      await answerOf(instance);
      await answerOf(instance, "/crash").catch(() => {});
      const ended = await exited(runtime, wanted.id);
      assert.deepEqual([ended.exit?.code, ended.exit?.out_of_memory, ended.address], [42, false, null]);
      await runtime.apply(wanted);
      assert.equal((await runtime.observe(wanted.id))[0]?.state, "exited");
      await runtime.restart(wanted, 0);
      const [again] = await runtime.observe(wanted.id);
      assert.deepEqual([again?.state, again?.attempt], ["running", 2]);
      await answerOf(again);
      await runtime.restart(wanted, 0);
      assert.equal((await runtime.observe(wanted.id))[0]?.attempt, 2, "a living instance is left alone");
      await runtime.remove(wanted.id);
    });

    it("calls back when an instance ends", async () => {
      const wanted = workload();
      const told: string[] = [];
      const stopListening = runtime.onChange((id) => told.push(id));
      await runtime.apply(wanted);
      const [instance] = await runtime.observe(wanted.id);
      await answerOf(instance);
      told.length = 0;
      await answerOf(instance, "/crash").catch(() => {});
      assert.ok(await until(() => told.includes(wanted.id) || undefined, { timeoutMs: waitMs }));
      stopListening();
      await runtime.remove(wanted.id);
    });

    it("lets an application finish on SIGTERM and keeps its last words until the workload is removed", async () => {
      const wanted = workload();
      await runtime.apply(wanted);
      const [instance] = await runtime.observe(wanted.id);
      await answerOf(instance);
      await runtime.stop(wanted.id, graceMs);
      const [ended] = await runtime.observe(wanted.id);
      assert.deepEqual([ended?.state, ended?.exit?.code], ["exited", 0]);
      assert.deepEqual((await runtime.readOutput(instance as Instance, null)).lines, [
        "started with hello",
        "got TERM",
      ]);
      await runtime.stop(wanted.id, graceMs);
      await runtime.remove(wanted.id);
      assert.deepEqual(await runtime.observe(wanted.id), []);
      assert.ok(!(await runtime.list()).includes(wanted.id));
    });

    it("kills an application that ignores SIGTERM", async () => {
      const image_ref = await fixture.makeImage(project, { "server.js": stubborn }, "node server.js");
      const wanted = workload({ image_ref });
      await runtime.apply(wanted);
      await answerOf((await runtime.observe(wanted.id))[0]);
      await runtime.stop(wanted.id, 200);
      assert.equal((await runtime.observe(wanted.id))[0]?.exit?.code, 137);
      await runtime.remove(wanted.id);
    });

    it("leaves nothing running of an application that ended, not even what left its process group", async () => {
      const image_ref = await fixture.makeImage(project, { "server.js": daemon }, "node server.js");
      const wanted = workload({ image_ref });
      await runtime.apply(wanted);
      const [instance] = await runtime.observe(wanted.id);
      await answerOf(instance);
      const linesSince = async (cursor: string | null) => runtime.readOutput(instance as Instance, cursor);
      assert.ok(await until(async () => (await linesSince(null)).lines.length > 0 || undefined, { timeoutMs: waitMs }));
      await runtime.stop(wanted.id, 200);
      const { cursor } = await linesSince(null);
      await sleep(500);
      assert.deepEqual((await linesSince(cursor)).lines, []);
      await runtime.remove(wanted.id);
    });

    it("ends and removes what does not exist without complaint", async () => {
      await runtime.stop("dep_unknown", graceMs);
      await runtime.remove("dep_unknown");
      assert.deepEqual(await runtime.observe("dep_unknown"), []);
    });

    it("finds its instances again after a restart of the control plane, and learns what ended meanwhile", async () => {
      const wanted = workload({ replicas: 2 });
      await runtime.apply(wanted);
      const before = await runtime.observe(wanted.id);
      const pids = await Promise.all(before.map(async (each) => (await answerOf(each)).pid));
      runtime = await fixture.reopen();
      assert.deepEqual(await runtime.observe(wanted.id), before);
      assert.deepEqual(await Promise.all(before.map(async (each) => (await answerOf(each)).pid)), pids);
      await answerOf(before[1], "/crash").catch(() => {});
      const ended = await exited(runtime, wanted.id);
      assert.deepEqual([ended.ordinal, ended.exit?.code], [1, 42]);
      await runtime.remove(wanted.id);
    });

    it("keeps the project's storage over workloads", async () => {
      const [first, second] = [workload(), workload()];
      await runtime.apply(first);
      const visited = await answerOf((await runtime.observe(first.id))[0], "/storage");
      await runtime.remove(first.id);
      await runtime.apply(second);
      assert.equal((await answerOf((await runtime.observe(second.id))[0])).storage, visited.storage);
      assert.match(visited.storage, /x$/);
      await runtime.remove(second.id);
    });

    it("gives output line by line from a cursor on, over restarts of the control plane, and frees what was stored", async () => {
      const wanted = workload();
      await runtime.apply(wanted);
      const [instance] = await runtime.observe(wanted.id);
      await answerOf(instance);
      const first = await runtime.readOutput(instance as Instance, null);
      assert.deepEqual([first.lines, first.dropped_bytes], [["started with hello"], 0]);
      await runtime.discardOutput(instance as Instance, first.cursor);
      await answerOf(instance, "/line", { "x-line": "later" });
      runtime = await fixture.reopen();
      const second = await runtime.readOutput(instance as Instance, first.cursor);
      assert.deepEqual([second.lines, second.dropped_bytes], [["later"], 0]);
      assert.deepEqual((await runtime.readOutput(instance as Instance, second.cursor)).lines, []);
      await runtime.remove(wanted.id);
    });

    it("runs a command to its end with the workload's environment and gives its output and code", async () => {
      const heard: string[] = [];
      const task = {
        timeoutMs: waitMs,
        silenceMs: waitMs,
        signal: new AbortController().signal,
        onOutput: (chunk: Buffer) => void heard.push(chunk.toString()),
      };
      const result = await runtime.runOnce(workload(), {
        ...task,
        command: 'echo "$GREETING" && cat server.js | wc -l && exit 3',
      });
      assert.deepEqual(result, { outcome: "exited", code: 3, out_of_memory: false });
      assert.match(heard.join(""), /^hello\n\s*\d+\n$/);
    });

    it("lets code change its own folder, and the next run finds the release as it was built", async () => {
      const signal = new AbortController().signal;
      const task = { timeoutMs: waitMs, silenceMs: waitMs, signal, onOutput: () => {} };
      const command = "test ! -e mine && echo x > mine && mkdir -p .cache && cat mine server.js";
      for (let round = 0; round < 2; round += 1)
        assert.deepEqual(await runtime.runOnce(workload(), { ...task, command }), {
          ...{ outcome: "exited", code: 0, out_of_memory: false },
        });
    });

    it("ends a command that takes too long, says nothing, or is called off", async () => {
      const run = (limits: { timeoutMs: number; silenceMs: number; signal?: AbortSignal }, command: string) =>
        runtime.runOnce(workload(), { signal: new AbortController().signal, onOutput: () => {}, ...limits, command });
      const chatter = "while :; do echo x; sleep 0.1; done";
      assert.equal((await run({ timeoutMs: 500, silenceMs: waitMs }, chatter)).outcome, "timed_out");
      assert.equal((await run({ timeoutMs: waitMs, silenceMs: 500 }, "sleep 60")).outcome, "silent");
      assert.equal(
        (await run({ timeoutMs: waitMs, silenceMs: waitMs, signal: AbortSignal.timeout(500) }, chatter)).outcome,
        "cancelled",
      );
    });

    it("measures what lies in a project's storage folder", async () => {
      const wanted = workload();
      const { project_id, project_number } = wanted;
      const write = task('head -c 3000000 /dev/zero > "$STORAGE_DIR/big"');
      assert.deepEqual(await runtime.runOnce(wanted, write), { outcome: "exited", code: 0, out_of_memory: false });
      const bytes = await runtime.storageBytes({ project_id, project_number });
      assert.ok(bytes !== null && bytes >= 3_000_000 && bytes < 4_000_000, String(bytes));
      const none = { project_id: "prj_none", project_number: 4_000_000 };
      assert.equal(await runtime.storageBytes(none), 0);
      for (let twice = 0; twice < 2; twice += 1) await runtime.removeStorage({ project_id, project_number });
      assert.equal(await runtime.storageBytes({ project_id, project_number }), 0);
    });

    it("counts at least a block for each file of a storage folder", async () => {
      const wanted = workload({ project_id: "prj_small_files", image_ref: image });
      await fixture.makeImage("prj_small_files", { "server.js": server }, "node server.js");
      await runtime.runOnce(wanted, task('for i in $(seq 500); do : > "$STORAGE_DIR/$i"; done'));
      assert.ok(((await runtime.storageBytes(wanted)) ?? 0) >= 500 * 4096);
    });

    it("starts instances and commands that may only read the storage folder", async (t) => {
      if (!(await runtime.describe()).isolation.includes("namespaces")) return t.skip("nothing is mounted here");
      await runtime.runOnce(workload(), task('echo kept > "$STORAGE_DIR/kept"'));
      const limited = workload({ storage_access: "read_only" });
      const write = task('cat "$STORAGE_DIR/kept" && ! rm "$STORAGE_DIR/kept" && ! echo x > "$STORAGE_DIR/new"');
      assert.deepEqual(await runtime.runOnce(limited, write), { outcome: "exited", code: 0, out_of_memory: false });
    });

    it("deletes what is named below the storage folder, whatever its owner made of the way there", async () => {
      const owner = workload();
      const { signal } = new AbortController();
      const make = 'mkdir -p "$STORAGE_DIR/a/b" && echo x > "$STORAGE_DIR/a/b/c" && ln -sfn / "$STORAGE_DIR/link"';
      await runtime.runOnce(owner, task(make));
      assert.equal(await runtime.removeStored(owner, "a/b", signal), true);
      assert.equal(await runtime.removeStored(owner, "a/b", signal), false);
      assert.equal(await runtime.removeStored(owner, "link", signal), true);
      const left = task('[ -d "$STORAGE_DIR/a" ] && [ ! -e "$STORAGE_DIR/a/b" ] && [ ! -L "$STORAGE_DIR/link" ]');
      assert.deepEqual(await runtime.runOnce(owner, left), { outcome: "exited", code: 0, out_of_memory: false });
    });

    it("tells which ports a living instance listens on, and whether others reach them", async () => {
      const elsewhere = `${server}\nrequire("node:net").createServer().listen(0, "127.0.0.1");`;
      const image_ref = await fixture.makeImage(project, { "server.js": elsewhere }, "node server.js");
      const wanted = workload({ image_ref });
      await runtime.apply(wanted);
      const [instance] = await runtime.observe(wanted.id);
      await answerOf(instance);
      const ports = await until(
        async () => ((await runtime.listening(wanted.id)).length === 2 ? runtime.listening(wanted.id) : undefined),
        { timeoutMs: waitMs },
      );
      const isShared = (await runtime.describe()).network === "shared";
      assert.deepEqual(ports?.map(({ loopback }) => loopback).toSorted(), [isShared, true]);
      await runtime.remove(wanted.id);
      assert.deepEqual(await runtime.listening(wanted.id), []);
    });

    it("measures living instances", async () => {
      const wanted = workload();
      await runtime.apply(wanted);
      await answerOf((await runtime.observe(wanted.id))[0]);
      const [usage] = await runtime.measure(wanted.id);
      assert.ok(
        usage && usage.memory_bytes > 1024 * 1024 && usage.processes >= 1 && usage.cpu_seconds > 0,
        JSON.stringify(usage),
      );
      await runtime.remove(wanted.id);
      assert.deepEqual(await runtime.measure(wanted.id), []);
    });

    it("does not delete an image in use, and deletes an unused one, twice if asked", async () => {
      const image_ref = await fixture.makeImage(project, { "server.js": `${server}// another\n` }, "node server.js");
      const wanted = workload({ image_ref });
      await runtime.apply(wanted);
      await assert.rejects(runtime.removeImage({ project_id: wanted.project_id, image_ref }));
      await runtime.remove(wanted.id);
      await runtime.removeImage({ project_id: wanted.project_id, image_ref });
      await runtime.removeImage({ project_id: wanted.project_id, image_ref });
      await assert.rejects(runtime.apply(wanted));
      await runtime.remove(wanted.id);
    });

    it("describes what it isolates, and of each missing part the effect and the remedy", async () => {
      const { isolation, missing } = await runtime.describe();
      for (const part of missing) assert.ok(part.effect !== "" && part.remedy !== "" && !isolation.includes(part.part));
    });
  });
}

interface Answer {
  readonly pid: number;
  readonly greeting: string;
  readonly host: string;
  readonly storage: string;
}

/** Asks an instance, for as long as it has not begun to listen. */
async function answerOf(
  instance: Instance | undefined,
  path = "/",
  headers: Record<string, string> = {},
): Promise<Answer> {
  assert.ok(instance?.address, "the instance has an address");
  const url = `http://${instance.address.host}:${instance.address.port}${path}`;
  const ask = () => fetch(url, { headers }).then((response) => response.json() as Promise<Answer>);
  const listening = await until(
    () =>
      fetch(url.replace(path, "/")).then(
        () => true,
        () => undefined,
      ),
    { timeoutMs: waitMs },
  );
  assert.ok(listening, "the instance answers");
  return ask();
}

async function exited(runtime: Runtime, workloadId: string): Promise<Instance> {
  const found = await until(async () => (await runtime.observe(workloadId)).find((each) => each.state === "exited"), {
    timeoutMs: waitMs,
  });
  assert.ok(found, "the instance has ended");
  return found;
}
