// Drawn with other journey files: it starts a whole platform and waits for real traffic to be counted.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Result } from "../../src/contract/routes.ts";
import { until } from "../../src/kit/until.ts";
import { eventually } from "../support/eventually.ts";
import { createApp, startPlatform, type TestApp, type TestPlatform } from "./platform.ts";

const slug = "shop";
/** The rule of the product: trouble is found within a minute. */
const foundWithinMs = 60_000;

let platform: TestPlatform;
let app: TestApp;

/** An application with two paths; `answer` decides what `/api` does. */
const files = (answer: string, more = ""): Record<string, string> => ({
  "package.json": JSON.stringify({ name: slug, private: true, scripts: { start: "node server.js" } }),
  "server.js": `${more}
require("node:http").createServer((request, response) => {
  if (request.url !== "/api") return response.end("home");
  ${answer}
}).listen(process.env.PORT, process.env.HOST);
`,
});

before(async () => {
  platform = await startPlatform();
  app = await createApp(platform, slug, files(`response.end("good");`));
});
after(() => platform?.destroy());

async function visit(count: number, path: string): Promise<number[]> {
  const seen: number[] = [];
  let left = count;
  const one = async () => {
    while ((left -= 1) >= 0) seen.push((await platform.visit(slug, path)).status);
  };
  await Promise.all(Array.from({ length: 10 }, one));
  return seen;
}

async function get<T>(path: string): Promise<T> {
  const { status, body } = await platform.call<T>("GET", `/v1/projects/${slug}${path}`);
  assert.equal(status, 200, JSON.stringify(body));
  return body;
}

const diagnose = () => get<Result<"diagnosis.get">>("/diagnosis");

async function deploy(changed: Record<string, string>): Promise<number> {
  await app.commit(changed);
  const pushed = await app.push();
  assert.equal(pushed.exitCode, 0, pushed.stderr);
  return (await get<Result<"projects.get">>("")).active_deployment?.number ?? 0;
}

/** Waits for a finding with this code, and returns it with the whole diagnosis. */
async function finds(code: string) {
  const look = async () => {
    const whole = await diagnose();
    const finding = whole.findings.find((each) => each.code === code);
    return finding && { ...whole, finding };
  };
  const found = await until(look, { timeoutMs: foundWithinMs, atMostMs: 1000 });
  assert.ok(found, `${code} is not found within a minute: ${JSON.stringify((await diagnose()).findings)}`);
  const health = (await get<Result<"projects.get">>("")).health;
  assert.deepEqual([health?.code, health?.sentence], [code, found.finding.sentence]);
  return found;
}

test("an application that serves well has no problem", async () => {
  assert.equal((await app.push()).exitCode, 0);
  await visit(500, "/");
  await visit(60, "/api");
  assert.deepEqual((await diagnose()).findings, []);
});

test("a total failure of one path is found within a minute, with the deployment that brought it", async () => {
  const bad = await deploy(files(`response.writeHead(500).end("no");`));
  assert.deepEqual(new Set(await visit(60, "/api")), new Set([500]));
  const { finding } = await finds("server_errors");
  assert.equal(finding.seen["first_bad_deployment"], bad);
  assert.match(finding.sentence, /^60 of 60 requests since .* \(before: 0 of 560\)\. It began with deployment #2\.$/);
  assert.match(finding.advice, /A rollback brings #1 back\.$/);
});

test("an error that was mended is no problem any more", async () => {
  await deploy(files(`response.end("good");`));
  await visit(30, "/api");
  assert.deepEqual((await diagnose()).findings, []);
});

test("a path that became slow is found within a minute, with its deployment", async () => {
  const slow = await deploy(files(`setTimeout(() => response.end("late"), 560);`));
  await visit(60, "/api");
  const { finding } = await finds("slow");
  assert.equal(finding.seen["first_bad_deployment"], slow);
  assert.match(finding.sentence, /^60 of \d+ requests since .* took longer than 200 ms \(before: \d of 650\)/);
});

test("a loop of crashes is found within a minute, counted in one line, and shown in every place", async () => {
  const crashing = await deploy(
    files(`response.end("good");`, `setTimeout(() => { console.log("out of luck"); process.exit(3); }, 3000);`),
  );
  const { finding, log } = await finds("crash_loop");
  assert.equal(finding.seen["first_bad_deployment"], crashing);
  assert.ok(
    log.lines.some(({ text }) => text === "out of luck"),
    "the log lines come with it",
  );
  const three = async () => {
    const { processes } = await get<Result<"processes.list">>("/processes");
    return (processes[0]?.running.find(({ deployment }) => deployment === crashing)?.restarts ?? 0) >= 3;
  };
  await eventually(three, "each crash of the deployment is counted");
  const { timeline } = await get<Result<"timeline.list">>("/timeline?kind=replica");
  assert.equal(timeline.length, 1, JSON.stringify(timeline));
  assert.match(timeline[0]?.summary ?? "", /^Crashed \d+ times since .*: deployment \d+, replica 0, exit code 3/);
  const { lines } = await get<Result<"logs.list">>("/logs?limit=500");
  assert.deepEqual(
    lines.filter(({ text }) => text.includes("Terminated")),
    [],
  );
});

test("a wrong port ends the wait once it is sure, and a slow start gets the time that its project allows", async () => {
  const page = `(request, response) => response.end("page")`;
  const server = (code: string) => ({ "server.js": `const { createServer } = require("node:http");\n${code}\n` });
  await app.commit(server(`createServer(${page}).listen(4321);`));
  const beganMs = performance.now();
  const wrong = await app.push();
  assert.match(
    wrong.stderr,
    /Nothing answered on port 3000 for [12]\d s: the application listens on port 4321 instead/,
  );
  assert.ok(performance.now() - beganMs < 55_000, "the wait ends before its limit of 60 s");
  // A port for metrics, which shows no page, opens long before the one for visitors.
  const late = `createServer((request, response) => response.writeHead(404).end()).listen(9100);
setTimeout(() => createServer(${page}).listen(process.env.PORT, process.env.HOST), 20000);`;
  await app.commit(server(late));
  assert.equal((await app.push()).exitCode, 0);
  const allow = (start_seconds: number | null) =>
    platform.call("PUT", `/v1/projects/${slug}/settings`, { start_seconds });
  assert.equal((await allow(6)).status, 200);
  await app.commit({ "note.txt": "again" });
  assert.match((await app.push()).stderr, /Nothing answered on port 3000 for 6 s[^]*--start-seconds 180/);
  assert.equal((await allow(901)).status, 400);
});
