import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { run, systemPath } from "../../src/kit/exec.ts";
import { createApp, startPlatform, type TestPlatform } from "./platform.ts";
import { processesNaming } from "./processes.ts";
import { eventually, guardMs } from "../support/eventually.ts";

// Drawn with other operation files: it starts whole platforms, which takes too long for every run.

const daemon = fileURLToPath(new URL("../../src/daemon/main.ts", import.meta.url));
const source = `require("node:http").createServer((q, s) => s.end(\`\${process.env.FIRST} \${process.env.SECOND}\`)).listen(process.env.PORT);`;
let platform: TestPlatform;

before(async () => {
  platform = await startPlatform();
});
after(() => platform.destroy());

const keys = () =>
  Object.keys((JSON.parse(readFileSync(join(platform.dataDir, "secrets.key"), "utf8")) as { keys: object }).keys);
const set = async (key: string, value: string) =>
  assert.equal((await platform.call("PUT", `/v1/projects/demo/env/${key}`, { value })).status, 204);
const answers = (text: string) =>
  eventually(async () => (await platform.visit("demo")).body === text, `the application responds ${text}`);

async function rotate(): Promise<void> {
  const env = { PATH: systemPath, HOME: process.env["HOME"] ?? "/", BERTH_DATA: platform.dataDir };
  const command = { file: process.execPath, args: [daemon, "rotate-secrets"] };
  const { exitCode, stdout, stderr, timedOut } = await run(command, { env, timeoutMs: guardMs });
  assert.deepEqual([exitCode, timedOut], [0, false], stderr);
  assert.match(stdout, /^Encrypted \d+ secrets with key \d+\.$/m);
}

test("the command succeeds with and without a running platform, and every value can still be decrypted", async () => {
  const files = { "package.json": '{ "scripts": { "start": "node server.js" } }', "server.js": source };
  const app = await createApp(platform, "demo", files);
  await set("FIRST", "one");
  await set("SECOND", "two");
  assert.equal((await app.push()).exitCode, 0);
  await rotate();
  assert.deepEqual(keys(), ["1", "2"]);
  await set("SECOND", "three");
  await answers("one three");
  await platform.end("SIGINT");
  await rotate();
  assert.deepEqual(processesNaming(platform.dataDir), [], "the command has ended the database that it started");
  assert.deepEqual(keys(), ["2", "3"]);
  await platform.restart();
  await set("SECOND", "four");
  await answers("one four");
});
