import assert from "node:assert/strict";
import { once } from "node:events";
import { chmodSync, existsSync, mkdirSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer as createHttpServer, type RequestListener } from "node:http";
import { createServer, type AddressInfo } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { freePort } from "../../../test/support/free-port.ts";
import { testFolder } from "../../../test/support/test-folder.ts";
import { run, runOk, type RunOptions } from "../../kit/exec.ts";
import { ownFolder } from "../../kit/own-version.ts";
import type { Finding } from "./examine.ts";

const root = testFolder("doctor");
const names = ["BERTH_HTTP_PORT", "BERTH_EDGE_PORT", "BERTH_SSH_PORT"] as const;
const ports = Object.fromEntries(await Promise.all(names.map(async (name) => [name, String(await freePort())])));
const berthd = (args: readonly string[], settings: Record<string, string>, more: RunOptions = {}) =>
  run(
    { file: process.execPath, args: [join(ownFolder, "src/daemon/main.ts"), ...args] },
    { env: { PATH: process.env["PATH"] ?? "", HOME: root, ...ports, ...settings }, ...more },
  );
async function listen(answer: RequestListener) {
  const server = createHttpServer(answer).listen(0, "127.0.0.1");
  await once(server, "listening");
  return server;
}
async function findings(settings: Record<string, string>) {
  const { stdout, stderr, exitCode } = await berthd(["doctor", "--json"], settings);
  assert.notEqual(stdout, "", stderr);
  const all = (JSON.parse(stdout) as { findings: Finding[] }).findings;
  assert.equal(exitCode, all.some(({ status }) => status === "fail") ? 1 : 0);
  return Object.fromEntries(all.map((finding) => [finding.check, finding]));
}

test("before the first start nothing fails, and nothing is created", async () => {
  const dataDir = join(root, "new");
  const found = await findings({ BERTH_DATA: dataDir });
  assert.deepEqual(
    Object.values(found).filter(({ status }) => status === "fail"),
    [],
  );
  assert.equal(found["platform"]?.remedy, "Start it: berthd start");
  assert.match(found["ports"]?.detail ?? "", /are free/);
  assert.equal(existsSync(dataDir), false);
});

test("what fails is named with its remedy: an open folder, a taken port, a name without address, a dead store", async (t) => {
  const dataDir = join(root, "open");
  mkdirSync(dataDir);
  chmodSync(dataDir, 0o755);
  const server = createServer().listen(0, "127.0.0.1");
  t.after(() => server.close());
  await new Promise((resolve) => server.once("listening", resolve));
  const taken = String((server.address() as AddressInfo).port);
  writeFileSync(join(root, "secret"), "secret");
  const found = await findings({
    ...{ BERTH_DATA: dataDir, BERTH_HTTP_PORT: taken, BERTH_DOMAIN: "apps.invalid", BERTH_HOST: "localhost" },
    ...{
      BERTH_S3_URL: `http://key@127.0.0.1:${await freePort()}/bucket/`,
      BERTH_S3_SECRET_KEY_FILE: join(root, "secret"),
    },
  });
  assert.match(found["data_folder"]?.remedy ?? "", /^chmod 700 /);
  assert.match(found["ports"]?.detail ?? "", new RegExp(`Port ${taken} on .* is in use`));
  assert.match(found["names"]?.remedy ?? "", /\*\.apps\.invalid/);
  assert.match(found["backups"]?.detail ?? "", /BERTH_S3_URL does not work/);
});

test("a bundle holds no secret that Berth knows of, and only its writer can read it", async () => {
  const dataDir = join(root, "bundled");
  mkdirSync(dataDir, { mode: 0o700 });
  writeFileSync(join(dataDir, "admin-token"), "berth_the_first_token\n");
  const settings = {
    ...{ BERTH_DATA: dataDir, BERTH_WEBHOOK_URL: "http://localhost:9/hidden", BERTH_WEBHOOK_SECRET: "whsec_hidden" },
    BERTH_DATABASE_URL: "postgres://berth:hidden@localhost:9/berth?password=hidden",
  };
  const logs = join(dataDir, "logs");
  mkdirSync(logs);
  writeFileSync(join(logs, "berthd.log"), "connecting with hidden\nDashboard: http://localhost/sign-in#hidden_code\n");
  const file = join(root, "bundle.tar.gz");
  writeFileSync(file, "earlier", { mode: 0o644 });
  const { exitCode, stderr } = await berthd(["support-bundle", file], settings);
  assert.equal(exitCode, 0, stderr);
  const { stdout } = await runOk({ file: "tar", args: ["--extract", "--gzip", "--to-stdout", `--file=${file}`] });
  assert.match(stdout, /BERTH_DATABASE_URL=postgres:\/\/\[redacted\]@localhost:9\/berth/);
  assert.match(stdout, /"check": "platform"/);
  assert.doesNotMatch(stdout, /hidden|berth_the_first_token/);
  assert.equal((await runOk({ file: "stat", args: ["-c", "%a", file] })).stdout.trim(), "600");
});

test("a bundle's questions take the first token to Berth only, not to another program at its port", async (t) => {
  const dataDir = join(root, "stopped");
  mkdirSync(dataDir, { mode: 0o700 });
  writeFileSync(join(dataDir, "admin-token"), "berth_the_first_token\n");
  const asked: unknown[] = [];
  const stranger = await listen((request, response) => {
    asked.push(request.headers.authorization);
    response.end("<html>");
  });
  t.after(() => stranger.close());
  const settings = { BERTH_DATA: dataDir, BERTH_HTTP_PORT: String((stranger.address() as AddressInfo).port) };
  const { exitCode, stderr } = await berthd(["support-bundle", join(root, "stopped.tar.gz")], settings);
  assert.equal(exitCode, 0, stderr);
  assert.deepEqual(
    asked.filter((header) => header !== undefined),
    [],
  );
});

/** Makes what a start, and then a restore, leave of a data folder. */
function filledFolder(name: string): string {
  const dataDir = join(root, name);
  mkdirSync(join(dataDir, "control-database/data"), { recursive: true, mode: 0o700 });
  writeFileSync(join(dataDir, "recovery.pub"), "age1");
  return dataDir;
}
const purge = (settings: Record<string, string>) => berthd(["uninstall", "--purge", "--yes"], settings);

test("a standby is no platform: doctor says so, and uninstall removes it, also behind a link", async () => {
  const dataDir = filledFolder("standby");
  writeFileSync(join(dataDir, "standby"), "pbk_one");
  const settings = { BERTH_DATA: join(root, "link") };
  symlinkSync(dataDir, settings.BERTH_DATA);
  const { platform } = await findings(settings);
  assert.deepEqual([platform?.status, platform?.detail.includes("stands by")], ["warn", true]);
  const { exitCode, stderr } = await purge(settings);
  assert.equal(exitCode, 0, stderr);
  assert.deepEqual(readdirSync(dataDir), []);
});

test("uninstall waits for an upgrade, and names the reason when it cannot end what runs", async (t) => {
  const dataDir = filledFolder("busy");
  mkdirSync(join(dataDir, "upgrade"));
  const steps = join(dataDir, "upgrade/steps");
  writeFileSync(steps, `${JSON.stringify({ step: "switching", at: "2026-01-02T03:04:05Z" })}\n`);
  assert.match((await purge({ BERTH_DATA: dataDir })).stderr, /An upgrade is under way/);
  rmSync(steps);
  const stranger = await listen((_, response) => void response.end("<html>"));
  t.after(() => stranger.close());
  const { port } = stranger.address() as AddressInfo;
  const { stderr } = await purge({ BERTH_DATA: dataDir, BERTH_HTTP_PORT: String(port) });
  assert.match(stderr, /nothing was changed:[^]*in use/);
  assert.ok(existsSync(join(dataDir, "recovery.pub")));
});

test("a folder that BERTH_DATA names by mistake is not deleted", async () => {
  const mine = join(root, "mine");
  mkdirSync(mine);
  writeFileSync(join(mine, "letter"), "kept");
  const { exitCode, stderr } = await berthd(["uninstall", "--purge", "--yes"], { BERTH_DATA: mine });
  assert.deepEqual([exitCode, existsSync(join(mine, "letter"))], [1, true]);
  assert.match(stderr, /is no data folder of Berth/);
});

test("wrong words are refused with the help, and help is no error", async () => {
  const verbs = ["doctor", "support-bundle", "uninstall", "restore", "follow"].map(async (verb) => {
    const refused = await berthd([verb, "--bogus"], {});
    assert.equal(refused.exitCode, 1);
    assert.match(refused.stderr, new RegExp(`Usage: berthd ${verb}`));
    const helped = await berthd([verb, "--help"], {});
    assert.deepEqual([helped.exitCode, helped.stdout.startsWith(`Usage: berthd ${verb}`)], [0, true]);
  });
  await Promise.all(verbs);
  assert.equal((await berthd(["promote", "--bogus"], {})).exitCode, 1);
});
