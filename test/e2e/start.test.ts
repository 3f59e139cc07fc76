import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { runOk, startDetached, type Command } from "../../src/kit/exec.ts";
import {
  askReady,
  createApp,
  launch,
  layGround,
  nodeApp,
  startPlatform,
  type Ground,
  type TestPlatform,
} from "./platform.ts";
import { drawCases, runsAll } from "../support/draw-cases.ts";
import { seededRandom } from "../support/seeded-random.ts";
import { liveApp } from "./apps.ts";
import { killProcesses, listProcesses, processesNaming } from "./processes.ts";
import { eventually, guardMs } from "../support/eventually.ts";
import { ask } from "./traffic.ts";

// Drawn with other operation files: it starts whole platforms, which takes too long for every run.

const random = seededRandom();
const starter = fileURLToPath(new URL("../../bin/berthd", import.meta.url));
const grounds: Ground[] = [];
const platforms: TestPlatform[] = [];
const terminals: number[] = [];

afterEach(async () => {
  // A failed test may leave these running.
  for (const group of terminals.splice(0)) process.kill(-group, "SIGKILL");
  for (const platform of platforms.splice(0)) await platform.destroy();
  for (const { dataDir } of grounds.splice(0)) {
    killProcesses(processesNaming(dataDir));
    rmSync(dataDir, { recursive: true, force: true });
  }
});

for (const name of drawCases(["http", "ssh", "edge"] as const, 1, random)) {
  test(`if the ${name} port is taken, the start fails with one sentence and leaves no process`, async () => {
    const ground = await ours();
    const taken = await listenOn(ground.ports[name]);
    const { exitCode, output } = await startToEnd(ground);
    taken.close();
    assert.notEqual(exitCode, 0);
    const complaints = output.split("\n").filter((line) => line.includes(`${ground.ports[name]}`));
    assert.equal(complaints.length, 1, output);
    assert.match(complaints[0] as string, new RegExp(`BERTH_${name.toUpperCase()}_PORT`));
    assert.doesNotMatch(output, /^ +at /m, "the output contains no stack trace");
    await nothingRuns(ground);
  });
}

test("Ctrl-C, and SIGTERM to npm alone, end every process; the next start restores the applications without deploying the example again", async (t) => {
  const scratch = mkdtempSync(join(tmpdir(), "berth-start-"));
  t.after(() => rmSync(scratch, { recursive: true, force: true }));
  const ground = await ours({ BERTH_EXAMPLE: "1", TMPDIR: scratch });
  const first = await startInTerminal(ground);
  await eventually(() => first.output().includes("The example is live"), "the output reports the example");
  assert.equal((await ask(ground.ports.edge, "example", "/")).status, 200);
  const { body: me } = await asPlatform(ground).call<{ platform: { ssh_host_key: string } }>("GET", "/v1/me");
  assert.equal(me.platform.ssh_host_key, await hostKeyOf(ground));
  assert.match(first.output(), new RegExp(`SSH host key +${RegExp.escape(me.platform.ssh_host_key)}\n`));
  const app = await createApp(asPlatform(ground), "kept", liveApp({ version: "kept", marker: ground.dataDir }));
  const pushed = await app.push();
  assert.equal(pushed.exitCode, 0, pushed.stderr);
  await first.interrupt();
  await nothingRuns(ground);
  await interruptAtStart(ground, 60 + random() * 4000);
  assert.deepEqual(leftInKernel(ground), []);
  for (const port of Object.values(ground.ports)) (await listenOn(port)).close();
  const second = await startInTerminal(ground, { file: "npm", args: ["start"] });
  await eventually(
    async () => (await ask(ground.ports.edge, "kept", "/")).body === "kept",
    "the application is served again",
  );
  await eventually(
    async () => (await ask(ground.ports.edge, "example", "/")).status === 200,
    "the example is served again",
  );
  const runFolders = runFoldersOf(ground);
  assert.ok(runFolders.length > 0 && runFolders.every((folder) => existsSync(folder)), runFolders.join(" "));
  await second.terminate();
  assert.ok(
    readdirSync(join(ground.dataDir, "compiled-code")).length > 0,
    "a start keeps what it compiled for the next",
  );
  assert.equal(second.output().split("The example is live").length, 2, "only the first start reports the example");
  assert.deepEqual(
    runFolders.filter((folder) => existsSync(folder)),
    [],
    "the folders of sockets are removed",
  );
  const left = readdirSync(scratch).filter((name) => name.startsWith("berth"));
  assert.deepEqual(left, [], "no temporary file of Berth is left");
  await nothingRuns(ground);
});

test("a first start that is killed at any instant does not prevent the next one from working", async (t) => {
  const ground = await ours();
  const instants = Array.from({ length: runsAll ? 7 : 2 }, () => 60 + random() * 2000);
  for (const afterMs of instants) {
    const child = launch(ground.env);
    const over = new Promise((resolve) => child.once("close", resolve));
    child.stdout.resume();
    child.stderr.resume();
    await sleep(afterMs);
    child.kill("SIGKILL");
    await over;
  }
  t.diagnostic(`killed after ${instants.map(Math.round).join(", ")} ms`);
  const platform = await startPlatform({}, { dataDir: ground.dataDir });
  platforms.push(platform);
  const app = await createApp(platform, "first", nodeApp("works"));
  const pushed = await app.push();
  assert.equal(pushed.exitCode, 0, pushed.stderr);
});

test("with BERTH_ON_STOP=keep, applications keep serving, and the next start finds the same processes", async () => {
  const platform = await platformOfOurs({ BERTH_ON_STOP: "keep" });
  await refusesASecondStart(platform);
  const app = await createApp(platform, "lasting", liveApp({ version: "lasting" }));
  assert.equal((await app.push()).exitCode, 0);
  const replica = await ask(platform.edgePort, "lasting", "/replica");
  await platform.end("SIGINT");
  assert.equal((await ask(platform.edgePort, "lasting", "/replica")).body, replica.body);
  await platform.restart();
  assert.equal((await ask(platform.edgePort, "lasting", "/replica")).body, replica.body);
  await app.commit(liveApp({ version: "next" }));
  assert.equal((await app.push()).exitCode, 0);
  assert.equal((await ask(platform.edgePort, "lasting", "/")).body, "next");
});

test(
  "without namespaces, an ordinary user's platform starts with a warning and only runs code of its first organization",
  { skip: process.geteuid?.() !== 0 && "not root" },
  async () => {
    const home = mkdtempSync(join(tmpdir(), "berth-bare-"));
    // The user `nobody`: initdb needs a user with a name, and no namespace can provide one here.
    const uid = 65_534;
    chownSync(home, uid, uid);
    chmodSync(home, 0o755);
    const programs = join(home, "programs");
    mkdirSync(programs);
    // A bwrap that cannot create namespaces.
    writeFileSync(join(programs, "bwrap"), "#!/bin/sh\nexit 1\n", { mode: 0o755 });
    const settings = { HOME: home, PATH: `${programs}:${process.env["PATH"]}` };
    const platform = await startPlatform(settings, { uid, dataDir: join(home, "data") });
    platforms.push(platform);
    assert.match(platform.output(), /namespaces/);
    const app = await createApp(platform, "own", nodeApp("works"));
    const pushed = await app.push();
    assert.equal(pushed.exitCode, 0, pushed.stderr);
    assert.equal((await platform.visit("own")).body, "works");
    const { body } = await platform.call<{ owner_token: string }>("POST", "/v1/orgs", { slug: "acme", name: "Acme" });
    const other = { ...callerOf(platform.api, body.owner_token), org: "acme" };
    const foreign = await createApp(other, "foreign", nodeApp("never"));
    const refused = await foreign.push();
    assert.notEqual(refused.exitCode, 0);
    assert.match(refused.stderr, /isolate/);
    const url = "https://git.example.com/a/b.git";
    assert.equal((await other.call("PUT", "/v1/projects/foreign/follow", { url, branch: "main" })).status, 403);
    const headers = { authorization: `Bearer ${other.token}`, "content-type": "application/x-tar" };
    const source = { method: "PUT", headers, body: Buffer.alloc(1024) };
    assert.equal((await fetch(`${platform.api}/v1/projects/foreign/source`, source)).status, 403);
    await platform.destroy();
    platforms.pop();
    rmSync(home, { recursive: true, force: true });
  },
);

/** Interrupts a start after `afterMs` and checks that no process is left. */
async function interruptAtStart(ground: Ground, afterMs: number): Promise<void> {
  const child = launch(ground.env);
  let output = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk: Buffer) => (output += chunk.toString()));
  const over = new Promise<number | null>((resolve) => child.once("close", resolve));
  await sleep(afterMs);
  child.kill("SIGINT");
  // The code is null if the signal ended the process before it had installed its handler.
  const code = await over;
  assert.ok(code === 0 || code === null, `interrupted after ${afterMs} ms: ${code}\n${output}`);
  assert.doesNotMatch(output, /could not end|^ +at /m, `interrupted after ${afterMs} ms`);
  await nothingRuns(ground);
}

/** Checks that a second start on the same data fails with one sentence and does not affect the first. */
async function refusesASecondStart(platform: TestPlatform): Promise<void> {
  const other = await layGround({}, platform.dataDir);
  const { exitCode, output } = await startToEnd(other);
  assert.notEqual(exitCode, 0);
  assert.match(output, new RegExp(`Berth already runs on ${platform.dataDir} \\(process ${platform.pid}\\)`));
  assert.equal(await askReady(platform.api), true);
}

async function ours(settings: Record<string, string> = {}): Promise<Ground> {
  const ground = await layGround(settings);
  grounds.push(ground);
  return ground;
}

async function platformOfOurs(settings: Record<string, string> = {}): Promise<TestPlatform> {
  const platform = await startPlatform(settings);
  platforms.push(platform);
  return platform;
}

function listenOn(port: number): Promise<Server> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", reject).listen(port, "127.0.0.1", () => resolve(server));
  });
}

/** Runs a start that must end on its own. */
async function startToEnd(ground: Ground): Promise<{ exitCode: number | null; output: string }> {
  const child = launch(ground.env);
  let output = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk: Buffer) => (output += chunk.toString()));
  const timer = setTimeout(() => child.kill("SIGKILL"), guardMs);
  const exitCode = await new Promise<number | null>((resolve) => child.once("close", resolve));
  clearTimeout(timer);
  return { exitCode, output };
}

/** Starts the command in its own session, as a shell does, so that Ctrl-C reaches every process of its group. */
async function startInTerminal(ground: Ground, command: Command = { file: starter, args: ["start"] }) {
  const log = join(ground.dataDir, "terminal.log");
  const env = { ...ground.env, BERTH_NODE: process.execPath };
  const pid = await startDetached(command, log, { env, cwd: dirname(dirname(starter)) });
  terminals.push(pid);
  // Another process may reuse the id of an ended one, so `afterEach` must not kill it.
  const forget = () => void terminals.splice(terminals.indexOf(pid), 1);
  const ended = () => !listProcesses().some((each) => each.pid === pid);
  await eventually(async () => ended() || (await askReady(ground.api)) === true, "the platform is ready");
  assert.ok(!ended(), `the platform ended by itself:\n${readFileSync(log, "utf8")}`);
  return {
    output: () => readFileSync(log, "utf8"),
    async interrupt() {
      // `timeout` and some terminals send the signal to the process and to its group.
      process.kill(pid, "SIGINT");
      process.kill(-pid, "SIGINT");
      await eventually(ended, "Ctrl-C has ended the platform");
      forget();
    },
    /** Sends SIGTERM to the started process only, as a supervisor does. */
    async terminate() {
      process.kill(pid, "SIGTERM");
      await eventually(ended, "SIGTERM has ended the platform");
      forget();
    },
  };
}

/** Returns the part of a platform that `createApp` needs. */
function asPlatform(ground: Ground): Pick<TestPlatform, "api" | "token" | "call"> {
  return callerOf(ground.api, readFileSync(join(ground.dataDir, "admin-token"), "utf8").trim());
}

function callerOf(api: string, token: string): Pick<TestPlatform, "api" | "token" | "call"> {
  return {
    api,
    token,
    async call<T>(method: string, path: string, body?: unknown) {
      const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
      const response = await fetch(`${api}${path}`, {
        method,
        headers,
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      return { status: response.status, body: (await response.json()) as T };
    },
  };
}

/** Returns the cgroups that the platform left behind. Their names contain a hash of its folders. */
function leftInKernel({ dataDir }: Ground): readonly string[] {
  const folders = ["sandbox", "databases"].map((name) => join(dataDir, name));
  const tags = folders.map((folder) => createHash("sha256").update(folder).digest("hex").slice(0, 8));
  const groups = tags.flatMap((tag) => [`berth-${tag}`, `berth-databases-${tag}`]);
  const roots = readdirSync("/sys/fs/cgroup").map((name) => join("/sys/fs/cgroup", name));
  return roots.flatMap((root) => groups.map((group) => join(root, group))).filter((path) => existsSync(path));
}

/** Returns the fingerprint of the platform's SSH host key, as computed by OpenSSH. */
async function hostKeyOf({ dataDir }: Ground): Promise<string | undefined> {
  const file = join(dataDir, "ssh", "host_ed25519.pub");
  return (await runOk({ file: "ssh-keygen", args: ["-l", "-f", file] })).stdout.split(" ")[1];
}

/** Returns the folders of sockets outside of the data folder, which files in it refer to. */
function runFoldersOf({ dataDir }: Ground): readonly string[] {
  const places = [dataDir, ...readdirSync(dataDir).map((name) => join(dataDir, name))];
  const notes = places.map((place) => join(place, "run-folder")).filter((note) => existsSync(note));
  return notes.map((note) => readFileSync(note, "utf8"));
}

async function nothingRuns({ dataDir }: Ground): Promise<void> {
  await eventually(() => processesNaming(dataDir).length === 0, "no process of the data folder is left").catch(() =>
    assert.deepEqual(processesNaming(dataDir), []),
  );
}
