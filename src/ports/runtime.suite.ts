import assert from "node:assert/strict";
import { once } from "node:events";
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { createServer, type ListenOptions } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { unixSocketOf, type ServerAddress } from "../kit/server-address.ts";
import { until } from "../kit/until.ts";
import { storageRules, type MakeImage } from "./runtime-storage.suite.ts";
import type { Instance, Runtime, Workload, OneOffCommand } from "./runtime.ts";
import { atTerminal } from "../../test/support/at-terminal.ts";
import { guardMs } from "../../test/support/eventually.ts";

const talker = `
const size = () => process.stdout.getWindowSize().join("x");
// Prints nothing until the terminal has a size.
const wait = setInterval(() => size() !== "0x0" && (clearInterval(wait), console.log(process.env.TERM, size())), 10);
process.stdout.on("resize", () => console.log("resized", size()));
process.on("SIGINT", () => console.log("interrupted"));
process.stdin.on("data", (text) => console.log("<" + String(text).trim() + ">", size())).on("end", () => process.exit(7));
`;

/** What an adapter's test provides: an empty runtime, and functions that create images and reopen the runtime on the same state. */
export interface RuntimeFixture {
  readonly runtime: Runtime;
  /** Fields of every workload that does not set them itself, such as its storage. */
  readonly workload?: Partial<Workload>;
  /** Creates an image with these files in its working folder, with `node` and a POSIX shell; resolves with its `image_ref`. */
  readonly makeImage: MakeImage;
  /** Returns the runtime as a restarted control plane opens it. The previous one is not used any more. */
  reopen(): Promise<Runtime>;
  close(): Promise<void>;
}

const server = `
const http = require("node:http");
const fs = require("node:fs");
const started = require("node:crypto").randomUUID();
console.log("started with", process.env.GREETING);
process.on("SIGTERM", () => { console.log("got TERM"); setTimeout(() => process.exit(0), 50); });
http.createServer((request, response) => {
  if (request.url === "/crash") process.exit(42);
  if (request.url === "/line") console.log(request.headers["x-line"]);
  if (request.url === "/storage") fs.appendFileSync(process.env.STORAGE_DIR + "/visits", "x");
  const storage = fs.existsSync(process.env.STORAGE_DIR + "/visits") ? fs.readFileSync(process.env.STORAGE_DIR + "/visits", "utf8") : "";
  response.end(JSON.stringify({ started, greeting: process.env.GREETING, host: process.env.HOST, storage }));
}).listen(Number(process.env.PORT), process.env.HOST);
`;
const stubborn = `process.on("SIGTERM", () => {}); require("node:http").createServer((q, r) => r.end("{}")).listen(Number(process.env.PORT));`;
// Leaves its process group and closes nothing, as old daemons do.
const daemon = `require("node:child_process").spawn(process.execPath, ["-e", "setInterval(() => console.log('still here'), 20)"], { detached: true, stdio: "inherit" }).unref(); ${stubborn}`;
const graceMs = 10_000;
const waitMs = guardMs;

/** The rules that every runtime obeys. `makeFixture` is called once. */
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
      process: "web",
      image_ref: image,
      port: 3000,
      env: { GREETING: "hello" },
      limits: { memoryBytes: 256 * 1024 * 1024, processes: 64, cpus: 1 },
      reach: [],
      storage_access: "open",
      ...fixture.workload,
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
    /** Starts these ordinals for the first time. */
    const startAll = (wanted: Workload, ordinals: readonly number[] = [0]) =>
      Promise.all(ordinals.map(async (ordinal) => withoutMark(await runtime.start(wanted, { ordinal, attempt: 1 }))));
    const instancesOf = (id: string) => instancesIn(runtime, id);
    after(async () => {
      for (const { workload_id } of await runtime.observe()) await runtime.remove(workload_id);
      await fixture.close();
    });

    it("runs a process type without a port by its own command, without PORT and address, and ends it like any other", async () => {
      const worker = `process.on("SIGTERM", () => { console.log("got TERM"); process.exit(0); });
        console.log("PORT is", process.env.PORT, process.env.GREETING); setInterval(() => {}, 1000);`;
      const files = { "server.js": server, "worker.js": worker };
      const image_ref = await fixture.makeImage(project, files, "node server.js", {
        processes: { worker: "node worker.js" },
      });
      const wanted = workload({ image_ref, process: "worker", port: null });
      await startAll(wanted);
      const output = await readUntil(runtime, wanted.id, /PORT is/);
      assert.match(output, /PORT is undefined hello/);
      assert.deepEqual(
        (await instancesOf(wanted.id)).map(({ state, address }) => [state, address]),
        [["running", null]],
      );
      await runtime.stop(wanted.id, graceMs);
      assert.match(await readUntil(runtime, wanted.id, /got TERM/), /got TERM/);
    });

    it("lets an application reach a database's server where it says, in instances and in one-off commands", async () => {
      const folder = mkdtempSync(join(tmpdir(), "berth-reach-"));
      const database = await listenAsDatabase(folder);
      const endpoint = runtime.endpointFor(database.address);
      const connect = `require("net").connect(${endpoint.port}, "${endpoint.host}")`;
      const asking = `require("http").createServer((q, r) => ${connect}.on("error", (e) => r.end(String(e))).pipe(r)).listen(process.env.PORT, process.env.HOST);`;
      const image_ref = await fixture.makeImage(project, { "server.js": asking }, "node server.js");
      const wanted = workload({ image_ref, reach: [database.address] });
      const [instance] = await startAll(wanted);
      assert.equal(await until(() => textOf(instance as Instance), { timeoutMs: waitMs }), "a database");
      const said: Buffer[] = [];
      const onOutput = (chunk: Buffer) => void said.push(chunk);
      await runtime.runOnce(wanted, { ...task(`node -e '${connect}.pipe(process.stdout)'`), onOutput });
      assert.equal(Buffer.concat(said).toString(), "a database");
      const elsewhere = { host: "database.example.com", port: 5432 };
      assert.deepEqual(runtime.endpointFor(elsewhere), elsewhere, "a server on TCP needs no forwarder");
      await runtime.remove(wanted.id);
      database.close();
      rmSync(folder, { recursive: true, force: true });
    });

    it("starts replicas, each reachable at its address with the environment given", async () => {
      const wanted = workload();
      const instances = await startAll(wanted, [0, 1]);
      assert.deepEqual(await instancesOf(wanted.id), instances);
      assert.deepEqual(
        instances.map((each) => [each.ordinal, each.attempt, each.state, each.exit]),
        [
          [0, 1, "running", null],
          [1, 1, "running", null],
        ],
      );
      const answers = await Promise.all(instances.map((instance) => answerOf(instance)));
      // On the host's network, an address other than the loopback's would be open to every process of the host.
      const everywhere = (await runtime.describe()).network === "shared" ? "127.0.0.1" : "0.0.0.0";
      assert.deepEqual(
        answers.map(({ greeting, host }) => [greeting, host]),
        [
          ["hello", everywhere],
          ["hello", everywhere],
        ],
      );
      await runtime.remove(wanted.id);
    });

    it("changes nothing when the same attempt is started again, even twice at once", async () => {
      const wanted = workload();
      const [[first]] = await Promise.all([startAll(wanted), startAll(wanted)]);
      assert.equal(first?.state, "running");
      assert.deepEqual(await startAll(wanted), [first]);
      assert.deepEqual(await instancesOf(wanted.id), [first]);
      await runtime.remove(wanted.id);
    });

    it("stops and removes some replicas without touching the others", async () => {
      const wanted = workload();
      const [kept] = await startAll(wanted, [0, 1]);
      await runtime.stop(wanted.id, graceMs, [1]);
      assert.deepEqual(
        (await instancesOf(wanted.id)).map(({ state }) => state),
        ["running", "exited"],
      );
      await runtime.remove(wanted.id, [1]);
      assert.deepEqual(await instancesOf(wanted.id), [kept]);
      await runtime.remove(wanted.id);
    });

    it("ends an older attempt that runs when a newer one of the ordinal is started", async () => {
      const wanted = workload();
      const [older] = await startAll(wanted);
      const before = await answerOf(older);
      const newer = await runtime.start(wanted, { ordinal: 0, attempt: 3 });
      assert.deepEqual([newer.state, newer.attempt], ["running", 3]);
      assert.notEqual((await answerOf(newer)).started, before.started);
      assert.deepEqual(await instancesOf(wanted.id), [withoutMark(newer)]);
      await runtime.remove(wanted.id);
    });

    it("reports an exit with its code, leaves the instance exited, and starts it again only as a new attempt", async () => {
      const wanted = workload();
      const [instance] = await startAll(wanted);
      await answerOf(instance);
      await answerOf(instance, "/crash").catch(() => {});
      const ended = await exited(runtime, wanted.id);
      assert.deepEqual([ended.exit?.code, ended.exit?.out_of_memory, ended.address], [42, false, null]);
      assert.deepEqual(
        (await startAll(wanted)).map(({ state }) => state),
        ["exited"],
      );
      const again = await runtime.start(wanted, { ordinal: 0, attempt: 2 });
      assert.deepEqual([again.state, again.attempt], ["running", 2]);
      await answerOf(again);
      await runtime.remove(wanted.id);
    });

    it("marks output that may be new", async () => {
      const wanted = workload();
      const [instance] = await startAll(wanted);
      await answerOf(instance);
      await readLines(runtime, instance as Seen, null, 1);
      const markOf = async () =>
        (await runtime.observe()).find(({ workload_id }) => workload_id === wanted.id)?.output_mark;
      const mark = await markOf();
      assert.equal(await markOf(), mark);
      await answerOf(instance, "/line", { "x-line": "more" });
      assert.ok(await until(async () => (await markOf()) !== mark || undefined, { timeoutMs: waitMs }));
      await runtime.remove(wanted.id);
    });

    it("calls back when an instance ends", async () => {
      const wanted = workload();
      const told: string[] = [];
      const stopListening = runtime.onChange((id) => told.push(id));
      const [instance] = await startAll(wanted);
      await answerOf(instance);
      told.length = 0;
      await answerOf(instance, "/crash").catch(() => {});
      assert.ok(await until(() => told.includes(wanted.id) || undefined, { timeoutMs: waitMs }));
      stopListening();
      await runtime.remove(wanted.id);
    });

    it("lets an application finish on SIGTERM and keeps its last words until the workload is removed", async () => {
      const wanted = workload();
      const [instance] = await startAll(wanted);
      await answerOf(instance);
      await runtime.stop(wanted.id, graceMs);
      const [ended] = await instancesOf(wanted.id);
      assert.deepEqual([ended?.state, ended?.exit?.code], ["exited", 0]);
      assert.deepEqual((await runtime.readOutput(instance as Seen, null)).lines, ["started with hello", "got TERM"]);
      await runtime.stop(wanted.id, graceMs);
      await runtime.remove(wanted.id);
      assert.deepEqual(await instancesOf(wanted.id), []);
    });

    it("kills an application that ignores SIGTERM", async () => {
      const image_ref = await fixture.makeImage(project, { "server.js": stubborn }, "node server.js");
      const wanted = workload({ image_ref });
      await startAll(wanted);
      await answerOf((await instancesOf(wanted.id))[0]);
      await runtime.stop(wanted.id, 200);
      assert.equal((await instancesOf(wanted.id))[0]?.exit?.code, 137);
      await runtime.remove(wanted.id);
    });

    it("leaves nothing running of an application that ended, not even what left its process group", async () => {
      const image_ref = await fixture.makeImage(project, { "server.js": daemon }, "node server.js");
      const wanted = workload({ image_ref });
      const [instance] = await startAll(wanted);
      await answerOf(instance);
      const linesSince = async (cursor: string | null) => runtime.readOutput(instance as Seen, cursor);
      assert.ok(await until(async () => (await linesSince(null)).lines.length > 0 || undefined, { timeoutMs: waitMs }));
      await runtime.stop(wanted.id, 200);
      // Output written before the end may still arrive. A living process would write 25 lines in this time.
      const isSilent = async () => {
        const { cursor } = await linesSince(null);
        await sleep(500);
        return (await linesSince(cursor)).lines.length === 0 || undefined;
      };
      assert.ok(await until(isSilent, { timeoutMs: waitMs }), "a process of it goes on writing");
      await runtime.remove(wanted.id);
    });

    it("ends and removes what does not exist without complaint", async () => {
      await runtime.stop("dep_unknown", graceMs);
      await runtime.remove("dep_unknown");
      assert.deepEqual(await instancesOf("dep_unknown"), []);
    });

    it("finds its instances again after a restart of the control plane, and learns what ended meanwhile", async () => {
      const wanted = workload();
      await startAll(wanted, [0, 1]);
      const before = await instancesOf(wanted.id);
      const started = await Promise.all(before.map(async (each) => (await answerOf(each)).started));
      runtime = await fixture.reopen();
      assert.deepEqual(await instancesOf(wanted.id), before);
      assert.deepEqual(await Promise.all(before.map(async (each) => (await answerOf(each)).started)), started);
      await answerOf(before[1], "/crash").catch(() => {});
      const ended = await exited(runtime, wanted.id);
      assert.deepEqual([ended.ordinal, ended.exit?.code], [1, 42]);
      await runtime.remove(wanted.id);
    });

    it("keeps the project's storage over workloads", async () => {
      const [first, second] = [workload({ storage_access: "open" }), workload({ storage_access: "open" })];
      await startAll(first);
      const visited = await answerOf((await instancesOf(first.id))[0], "/storage");
      await runtime.remove(first.id);
      await startAll(second);
      assert.equal((await answerOf((await instancesOf(second.id))[0])).storage, visited.storage);
      assert.match(visited.storage, /x$/);
      await runtime.remove(second.id);
    });

    it("gives output line by line from a cursor on, over restarts of the control plane, and frees what was stored", async () => {
      const wanted = workload();
      const [instance] = await startAll(wanted);
      await answerOf(instance);
      const first = await readLines(runtime, instance as Seen, null, 1);
      assert.deepEqual([first.lines, first.dropped_bytes], [["started with hello"], 0]);
      await runtime.discardOutput(instance as Seen, first.cursor);
      await answerOf(instance, "/line", { "x-line": "later" });
      runtime = await fixture.reopen();
      const second = await readLines(runtime, instance as Seen, first.cursor, 1);
      assert.deepEqual([second.lines, second.dropped_bytes], [["later"], 0]);
      assert.deepEqual((await runtime.readOutput(instance as Seen, second.cursor)).lines, []);
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

    for (const where of ["in a pipe", "in a terminal"]) {
      it(`gives the first and last output ${where} of a command that ends at once, without a line feed too`, async () => {
        for (let round = 0; round < 4; round += 1) {
          const { onOutput, terminal, seen } = atTerminal();
          await runtime.runOnce(workload(), {
            ...task("printf first; node -e 'process.stdout.write(\"last\")'"),
            ...{ onOutput, ...(where === "in a terminal" ? { terminal } : {}) },
          });
          assert.equal(seen(), "firstlast");
        }
      });
    }

    it("gives a command a terminal: input, sizes, Ctrl-C, Ctrl-D and the exit code", async () => {
      const image_ref = await fixture.makeImage(project, { "server.js": server, "talk.js": talker }, "node server.js");
      const person = atTerminal();
      const running = runtime.runOnce(workload({ image_ref }), {
        ...task("exec node talk.js"),
        ...{ onOutput: person.onOutput, terminal: person.terminal },
      });
      await person.sees("100x30");
      await person.sees("xterm-256color ");
      person.types("hello\r");
      await person.sees("<hello>");
      for (let columns = 101; columns <= 120; columns += 1) person.resizes({ columns, rows: 50 });
      await person.sees("resized 120x50");
      person.types("wide\r");
      await person.sees("<wide> 120x50");
      person.types("\x03");
      await person.sees("interrupted");
      person.types("\x04");
      assert.deepEqual(await running, { outcome: "exited", code: 7, out_of_memory: false });
      assert.match(person.seen(), /hello\r\n<hello> 100x30\r\n/);
    });

    it("gives the exit code of a command that ends while a person types", async () => {
      const person = atTerminal();
      const run = { ...task("sleep 0.3; exit 3"), onOutput: person.onOutput, terminal: person.terminal };
      const typing = setInterval(() => person.types("a key\r"), 20);
      try {
        assert.deepEqual(await runtime.runOnce(workload(), run), { outcome: "exited", code: 3, out_of_memory: false });
      } finally {
        clearInterval(typing);
      }
    });

    it("waits with a terminal's output for a person who reads slowly, and ends a shell with all it started", async () => {
      const person = atTerminal({ isSlow: true });
      const cancel = new AbortController();
      const running = runtime.runOnce(workload(), {
        ...task("sh -c 'yes & yes'"),
        ...{ signal: cancel.signal, onOutput: person.onOutput, terminal: person.terminal },
      });
      await person.sees("y");
      assert.ok(person.seen().length < 1024 * 1024);
      cancel.abort();
      assert.deepEqual(await running, { outcome: "cancelled" });
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

    storageRules(() => ({ runtime, fixture, workload, task }));

    it("tells which ports a living instance listens on, and whether others reach them", async () => {
      const elsewhere = `${server}\nrequire("node:net").createServer().listen(0, "127.0.0.1");`;
      const image_ref = await fixture.makeImage(project, { "server.js": elsewhere }, "node server.js");
      const wanted = workload({ image_ref });
      const [instance] = await startAll(wanted);
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
      await startAll(wanted);
      await answerOf((await instancesOf(wanted.id))[0]);
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
      await startAll(wanted);
      await assert.rejects(runtime.removeImage({ project_id: wanted.project_id, image_ref }));
      await runtime.remove(wanted.id);
      await runtime.removeImage({ project_id: wanted.project_id, image_ref });
      await runtime.removeImage({ project_id: wanted.project_id, image_ref });
      await assert.rejects(startAll(wanted));
      await runtime.remove(wanted.id);
    });

    it("describes what it isolates, and of each missing part the effect and the remedy", async () => {
      const { isolation, missing } = await runtime.describe();
      for (const part of missing) assert.ok(part.effect !== "" && part.remedy !== "" && !isolation.includes(part.part));
    });
  });
}

interface Answer {
  /** Differs between processes, even if their pids are equal in their namespaces. */
  readonly started: string;
  readonly greeting: string;
  readonly host: string;
  readonly storage: string;
}

/** Sends a request to an instance, and repeats it until the instance listens. */
async function answerOf(instance: Seen | undefined, path = "/", headers: Record<string, string> = {}): Promise<Answer> {
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

/** Returns a workload's instances by ordinal. */
async function instancesIn(runtime: Runtime, workloadId: string): Promise<readonly Seen[]> {
  const found = (await runtime.observe()).filter(({ workload_id }) => workload_id === workloadId);
  return found.toSorted((one, other) => one.ordinal - other.ordinal).map(withoutMark);
}

type Seen = Omit<Instance, "output_mark">;

function withoutMark(instance: Instance): Seen {
  const { output_mark, ...seen } = instance;
  assert.notEqual(output_mark, "");
  return seen;
}

/** Returns the first replica's output once some of it matches. */
async function readUntil(runtime: Runtime, workloadId: string, wanted: RegExp): Promise<string> {
  const read = async () => {
    const [instance] = await instancesIn(runtime, workloadId);
    const { lines } = await runtime.readOutput(instance as Seen, null);
    return lines.some((line) => wanted.test(line)) ? lines.join("\n") : undefined;
  };
  return (await until(read, { timeoutMs: waitMs })) ?? "";
}

/** Returns an instance's output after the cursor once it has this many lines: an engine delivers written lines a moment later. */
async function readLines(runtime: Runtime, instance: Seen, cursor: string | null, count: number) {
  const read = async () => {
    const chunk = await runtime.readOutput(instance, cursor);
    return chunk.lines.length >= count ? chunk : undefined;
  };
  return (await until(read, { timeoutMs: waitMs })) ?? assert.fail("the output did not come");
}

async function exited(runtime: Runtime, workloadId: string): Promise<Seen> {
  const found = await until(
    async () => (await instancesIn(runtime, workloadId)).find((each) => each.state === "exited"),
    { timeoutMs: waitMs },
  );
  assert.ok(found, "the instance has ended");
  return found;
}

/** Listens like a project's PostgreSQL server: on a Unix socket in the folder, and on the same port of 127.0.0.1. */
async function listenAsDatabase(folder: string): Promise<{ address: ServerAddress; close(): void }> {
  chmodSync(folder, 0o711);
  const onTcp = await listenOn({ host: "127.0.0.1", port: 0 });
  const address = { host: folder, port: (onTcp.address() as { port: number }).port };
  const path = unixSocketOf(address) as string;
  const onSocket = await listenOn({ path });
  chmodSync(path, 0o777);
  return { address, close: () => [onTcp, onSocket].forEach((server) => server.close()) };
}

async function listenOn(where: ListenOptions) {
  const server = createServer((socket) => socket.end("a database")).listen(where);
  await once(server, "listening");
  return server;
}

const textOf = ({ address }: Instance): Promise<string | undefined> =>
  fetch(`http://${address?.host}:${address?.port}/`).then(
    (answer) => answer.text(),
    () => undefined,
  );
