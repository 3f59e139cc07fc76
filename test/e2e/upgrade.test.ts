// Drawn with other operation files: it starts whole platforms and replaces them, which takes too long for every run.
import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  createReadStream,
  readFileSync,
  readdirSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { once } from "node:events";
import { tmpdir } from "node:os";
import { basename, join, resolve } from "node:path";
import { after, before, test } from "node:test";
import { run, runOk, startDetached } from "../../src/kit/exec.ts";
import { packRelease, publicKeyOf, signRelease } from "../../tools/release/pack-release.ts";
import { eventually } from "../support/eventually.ts";
import { liveApp } from "./apps.ts";
import { askReady, createApp, layGround, type Ground } from "./platform.ts";
import { killProcesses, listProcesses, processesNaming } from "./processes.ts";
import { ask, failures, startTraffic } from "./traffic.ts";

const checkout = resolve(import.meta.dirname, "../..");
const privateKey = generateKeyPairSync("ed25519").privateKey.export({ type: "pkcs8", format: "pem" }).toString();
const folder = mkdtempSync(join(tmpdir(), "berth-upgrade-"));
const prefix = join(folder, "berth");
const releases = join(folder, "releases");
const next = "sql/9001-next.sql";
const last = "9002-last.sql";
const breaks = `throw new Error("this version is broken");\n`;

/** What each release changes of this checkout's files: text that is put in front of a file's. */
const versions: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  "0.1.0": {},
  "0.2.0": { [next]: "-- expand\nalter table platform_fact add column more text;\n" },
  "0.3.0": { [next]: "-- expand\nalter table platform_fact add column more text;\n", "src/daemon/start.ts": breaks },
  "0.5.0": {
    [next]: "-- expand\nalter table platform_fact add column more text;\n",
    [`sql/${last}`]: "-- contract\nalter table platform_fact drop column more;\n",
  },
  "0.4.0": { [next]: "-- expand\nalter table no_such_table add column more text;\n" },
};

const server = createServer();
let ground: Ground;
let token = "";

before(async () => {
  mkdirSync(releases, { recursive: true });
  // Node.js finds packages in the folders above a version, so the archives of this test need none.
  mkdirSync(prefix);
  symlinkSync(join(checkout, "node_modules"), join(prefix, "node_modules"));
  const archives = [];
  for (const [version, changes] of Object.entries(versions)) archives.push(await makeRelease(version, changes));
  await signRelease(releases, archives, privateKey);
  await runOk(
    { file: "/bin/sh", args: [join(releases, "install.sh"), "--no-start", "--prefix", prefix, "--version", "0.1.0"] },
    { env: { PATH: process.env["PATH"] ?? "", HOME: folder } },
  );
  server.on("request", ({ url = "" }, response) => {
    const file = createReadStream(join(releases, basename(url)));
    file.once("error", () => response.writeHead(404).end()).pipe(response);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const settings = {
    BERTH_ON_STOP: "keep",
    BERTH_RELEASE_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    BERTH_UPGRADE_WATCH_SECONDS: "3",
    BERTH_NODE: process.execPath,
  };
  ground = await layGround(settings);
  // Whatever the shell hides from others, users of applications read the program's files.
  const starter = ["-c", 'umask 077; exec "$0" start', join(prefix, "bin/berthd")];
  await startDetached({ file: "/bin/sh", args: starter }, join(folder, "log"), { env: ground.env });
  await eventually(() => askReady(ground.api), "the platform is ready");
  token = readFileSync(join(ground.dataDir, "admin-token"), "utf8").trim();
  const app = await createApp({ api: ground.api, token, call }, "shop", liveApp({ version: "shop" }));
  const pushed = await app.push();
  assert.equal(pushed.exitCode, 0, pushed.stderr);
});

after(() => {
  server.close();
  killProcesses([...processesNaming(folder), ...processesNaming(ground.dataDir)]);
  for (const each of [folder, ground.dataDir])
    rmSync(each, { recursive: true, force: true, maxRetries: 10, retryDelay: 200 });
});

test("a version whose migration fails is found out on the copy: nothing is replaced", async () => {
  const { pid } = controlPlane();
  const { upgrade } = await upgradeTo("0.4.0");
  assert.deepEqual([upgrade.status, upgrade.to], ["failed", "0.4.0"]);
  assert.match(upgrade.reason ?? "", /9001-next\.sql failed.*no_such_table/s);
  assert.equal(controlPlane().pid, pid);
  assert.equal(readlinkSync(join(prefix, "current")), "versions/0.1.0");
});

test("a version that does not start is replaced by the one before, and no request fails", async () => {
  const traffic = startTraffic(ground.ports.edge, ["shop"], 20);
  const { upgrade, version } = await upgradeTo("0.3.0");
  const answers = await traffic.stop();
  assert.deepEqual([upgrade.status, version], ["went_back", "0.1.0"]);
  assert.match(upgrade.reason ?? "", /0\.3\.0 .*was not ready/);
  assert.deepEqual(
    failures(answers, (body) => body === "shop"),
    [],
  );
});

// `switching` follows `rehearsed` within milliseconds, so no poll sees the latter as the last line.
const killedAfter = ["requested", "fetched", "checked", "backed_up", "copied", "switching", "switched"];

test("killed after each step, an upgrade goes on by itself; applications keep their processes", async () => {
  const replica = (await ask(ground.ports.edge, "shop", "/replica")).body;
  const traffic = startTraffic(ground.ports.edge, ["shop"], 20);
  // As a process leaves it that is killed while it fetches.
  mkdirSync(join(prefix, "versions/.install.upgrade/tree"), { recursive: true });
  const killing = killAfterSteps(killedAfter);
  const { upgrade, version, installed } = await upgradeTo("0.2.0");
  const answers = await traffic.stop();
  assert.deepEqual([upgrade.status, version], ["done", "0.2.0"], upgrade.reason ?? "");
  assert.deepEqual((await killing).toSorted(), killedAfter.toSorted());
  assert.deepEqual(
    failures(answers, (body) => body === "shop"),
    [],
  );
  assert.equal((await ask(ground.ports.edge, "shop", "/replica")).body, replica);
  assert.deepEqual(
    readdirSync(join(prefix, "versions")).filter((name) => name.startsWith(".")),
    [],
    "nothing unfinished is left",
  );
  assert.equal(statSync(join(prefix, "versions/0.2.0/bin/berthd")).mode & 0o777, 0o755);
  const current = new Map(installed.map((each) => [each.version, each.current]));
  assert.deepEqual([current.get("0.1.0"), current.get("0.2.0")], [false, true]);
  assert.ok(
    (installed.find((each) => each.version === "0.1.0")?.processes ?? 0) > 0,
    "the replica's shim runs from 0.1.0",
  );
});

test("the version before runs on the schema of the next one", async () => {
  const { upgrade, version } = await upgradeTo("0.1.0");
  assert.deepEqual([upgrade.status, version], ["done", "0.1.0"], upgrade.reason ?? "");
  assert.equal((await ask(ground.ports.edge, "shop", "/")).body, "shop");
});

test("finalizing applies what the version before would not survive, and nothing twice", async () => {
  const { upgrade } = await upgradeTo("0.5.0");
  assert.deepEqual([upgrade.status, upgrade.reason], ["done", null]);
  const before = await call<{ unfinalized: string[] }>("GET", "/v1/platform/versions");
  assert.deepEqual(before.body.unfinalized, [last]);
  const env = { ...ground.env, HOME: folder, BERTH_URL: ground.api, BERTH_TOKEN: token };
  const args = ["platform", "finalize", "--yes", "--json"];
  const { stdout, stderr } = await run({ file: join(prefix, "bin/berth"), args }, { env });
  assert.deepEqual((JSON.parse(stdout) as { unfinalized: string[] }).unfinalized, [], stderr);
  const { upgrade: back, version } = await upgradeTo("0.2.0");
  assert.deepEqual([back.status, version], ["failed", "0.5.0"], "the version before refuses the schema");
  assert.equal((await ask(ground.ports.edge, "shop", "/")).body, "shop");
});

interface Versions {
  readonly version: string;
  readonly installed: readonly { readonly version: string; readonly current: boolean; readonly processes: number }[];
  readonly upgrade: { readonly to: string | null; readonly status: string; readonly reason: string | null };
}

/** Runs `berth platform upgrade` to its end and returns what `berth platform versions` shows then. */
async function upgradeTo(version: string): Promise<Versions> {
  const env = { ...ground.env, HOME: folder, BERTH_URL: ground.api, BERTH_TOKEN: token };
  const args = ["platform", "upgrade", version, "--json"];
  const { stdout, stderr } = await run({ file: join(prefix, "bin/berth"), args }, { env, timeoutMs: 180_000 });
  assert.notEqual(stdout, "", `${stderr}\n${JSON.stringify(stepsOfUpgrade())}\n${lastLines()}`);
  return JSON.parse(stdout) as Versions;
}

/** The end of what the control planes and the upgrade wrote. */
function lastLines(): string {
  const files = [join(folder, "log"), join(ground.dataDir, "logs/berthd.log"), join(ground.dataDir, "upgrade/log")];
  return files
    .map((file) => (existsSync(file) ? `${file}:\n${readFileSync(file, "utf8").slice(-2000)}` : ""))
    .join("\n");
}

/** Kills the process of the upgrade once after each of these steps, and returns those after which it was running. */
async function killAfterSteps(steps: readonly string[]): Promise<readonly string[]> {
  const killed = new Set<string>();
  const look = () => {
    const last = stepsOfUpgrade().at(-1)?.step ?? "";
    if (!steps.includes(last) || killed.has(last)) return;
    const runner = listProcesses().find(
      ({ commandLine }) => commandLine.endsWith("main.ts upgrade") && commandLine.includes(prefix),
    );
    if (runner === undefined) return;
    killed.add(last);
    killProcesses([runner]);
  };
  // The shortest step takes a tenth of a second.
  const looking = setInterval(look, 10);
  await eventually(() => {
    const lines = stepsOfUpgrade();
    return lines.at(-1)?.step === "done" && lines[0]?.source === "0.2.0";
  }, "the upgrade is done").finally(() => clearInterval(looking));
  return [...killed];
}

function stepsOfUpgrade(): readonly { readonly step: string; readonly source?: string }[] {
  const file = join(ground.dataDir, "upgrade/steps");
  const text = existsSync(file) ? readFileSync(file, "utf8") : "";
  return text
    .split("\n")
    .slice(0, -1)
    .map((line) => JSON.parse(line) as { step: string });
}

function controlPlane() {
  const found = listProcesses().find(
    ({ commandLine }) => commandLine.includes(prefix) && commandLine.endsWith("main.ts start"),
  );
  assert.ok(found, "the control plane runs");
  return found;
}

async function call<T>(method: string, path: string, body?: unknown): Promise<{ status: number; body: T }> {
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  const response = await fetch(`${ground.api}${path}`, {
    method,
    headers,
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return { status: response.status, body: (await response.json()) as T };
}

/** Packs this checkout's product files as a release without packages and Node.js, and returns the archive's path. */
async function makeRelease(version: string, changes: Readonly<Record<string, string>>): Promise<string> {
  const stage = join(folder, "stage");
  for (const path of ["bin", "docs", "examples", "sql", "src", "tools/setup/prepare.sh", "package-lock.json"])
    cpSync(join(checkout, path), join(stage, path), { recursive: true });
  const manifest = JSON.parse(readFileSync(join(checkout, "package.json"), "utf8")) as object;
  writeFileSync(join(stage, "package.json"), JSON.stringify({ ...manifest, version }));
  for (const [path, text] of Object.entries(changes)) {
    const file = join(stage, path);
    writeFileSync(file, text + (existsSync(file) ? readFileSync(file, "utf8") : ""));
  }
  mkdirSync(join(stage, "dashboard"));
  writeFileSync(join(stage, "dashboard/index.html"), "a dashboard");
  mkdirSync(join(stage, "node_modules"));
  writeFileSync(join(stage, "node_modules/.package-lock.json"), "{}");
  const stamp = await runOk({ file: "cksum", args: [] }, { stdin: readFileSync(join(stage, "package-lock.json")) });
  writeFileSync(join(stage, "node_modules/.berth-stamp"), stamp.stdout);
  // install.sh runs the release's own Node.js once.
  mkdirSync(join(stage, ".toolchain/bin"), { recursive: true });
  symlinkSync("/bin/true", join(stage, ".toolchain/bin/node"));
  writeFileSync(join(stage, "release.json"), JSON.stringify({ version, commit: "0".repeat(40) }));
  writeFileSync(join(stage, "release-key.pem"), publicKeyOf(privateKey));
  const archive = await packRelease(stage, releases, { version, timeMs: 0, arch: process.arch });
  rmSync(stage, { recursive: true });
  return archive;
}
