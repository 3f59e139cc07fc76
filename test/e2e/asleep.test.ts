// Drawn with other journey files: it starts a whole platform and waits until an application without requests falls asleep.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Result } from "../../src/contract/routes.ts";
import { eventually } from "../support/eventually.ts";
import { createApp, startPlatform, type TestPlatform } from "./platform.ts";

const slug = "bear";
let platform: TestPlatform;

const server = `
const started = Date.now();
require("node:http").createServer(async (request, response) => {
  let body = "";
  for await (const part of request) body += part;
  response.end(JSON.stringify({ started, method: request.method, bytes: body.length }));
}).listen(process.env.PORT, process.env.HOST);
`;

before(async () => {
  platform = await startPlatform();
  const app = await createApp(platform, slug, {
    "package.json": JSON.stringify({ name: slug, private: true, scripts: { start: "node server.js" } }),
    "server.js": server,
  });
  const pushed = await app.push();
  assert.equal(pushed.exitCode, 0, pushed.stderr);
});
after(() => platform?.destroy());

const project = async () => (await platform.call<Result<"projects.get">>("GET", `/v1/projects/${slug}`)).body;
const running = async () =>
  (await platform.call<Result<"processes.list">>("GET", `/v1/projects/${slug}/processes`)).body.processes.flatMap(
    (type) => type.running,
  );
const visit = async () => {
  const { status, body } = await platform.visit(slug);
  assert.equal(status, 200, body);
  return JSON.parse(body) as { started: number };
};
const fallsAsleep = () =>
  eventually(
    async () => (await project()).health?.state === "asleep" && (await running()).length === 0,
    "it sleeps, and nothing of it runs",
  );

test("an application without requests stops, and the next requests wait until it has started", async () => {
  const before = await visit();
  await platform.call("PUT", `/v1/projects/${slug}/settings`, { sleep_after_minutes: 1 });
  await fallsAsleep();
  const answers = await Promise.all(Array.from({ length: 20 }, visit));
  const starts = new Set(answers.map(({ started }) => started));
  assert.equal(starts.size, 1, "it was started once");
  assert.ok((answers[0]?.started ?? 0) > before.started);
  await eventually(async () => (await project()).health?.state === "healthy", "it is awake");
});

test("a control plane that was killed leaves what sleeps asleep, and wakes it after its start", async () => {
  await fallsAsleep();
  await platform.end("SIGKILL");
  const { status, headers } = await platform.visit(slug);
  assert.deepEqual([status, headers["x-berth-error"]], [503, "asleep"], "nobody could start it");
  await platform.restart();
  assert.equal((await project()).health?.state, "asleep");
  await visit();
});
