// Drawn with other journey files: it starts a whole platform and waits until an application without requests falls asleep.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Result } from "../../src/contract/routes.ts";
import { eventually } from "../support/eventually.ts";
import { processesNaming } from "./processes.ts";
import { createApp, startPlatform, type TestPlatform } from "./platform.ts";

const slug = "bear";
let platform: TestPlatform;

const preview = "cub--bear";

/** Does not start without its database. */
const server = `
const started = Date.now();
const pool = new (require("pg").Pool)({ connectionString: process.env.DATABASE_URL });
pool.on("error", () => {});
const count = "select count(*)::int as starts from start";
pool.query("create table if not exists start (at timestamptz default now()); insert into start default values").then(() =>
  require("node:http").createServer(async (request, response) => {
    const { rows } = await pool.query(count);
    response.end(JSON.stringify({ started, ...rows[0] }));
  }).listen(process.env.PORT, process.env.HOST));
`;

before(async () => {
  platform = await startPlatform();
  const app = await createApp(platform, slug, {
    "package.json": JSON.stringify({
      ...{ name: slug, private: true, scripts: { start: "node server.js" } },
      dependencies: { pg: "8.23.1" },
    }),
    "server.js": server,
  });
  assert.equal((await platform.call("POST", `/v1/projects/${slug}/database`)).status, 201);
  assert.equal((await platform.call("PUT", `/v1/projects/${slug}/settings`, previews)).status, 200);
  for (const branch of ["main", "cub"]) {
    const pushed = await app.push(branch);
    assert.equal(pushed.exitCode, 0, pushed.stderr);
  }
});
after(() => platform?.destroy());

const previews = { previews: ["*"], preview_data: "branch" };
const project = async (of = slug) => (await platform.call<Result<"projects.get">>("GET", `/v1/projects/${of}`)).body;
const running = async (of: string) =>
  (await platform.call<Result<"processes.list">>("GET", `/v1/projects/${of}/processes`)).body.processes.flatMap(
    (type) => type.running,
  );
const visit = async (of = slug) => {
  const { status, body } = await platform.visit(of);
  assert.equal(status, 200, body);
  return JSON.parse(body) as { started: number; starts: number };
};
/** Counts the database servers of projects and branches. */
const servers = () =>
  processesNaming(`${platform.dataDir}/databases/`).filter(({ commandLine }) =>
    /^\S+\/bin\/postgres -D /.test(commandLine),
  ).length;
const fallsAsleep = (of = slug) =>
  eventually(
    async () => (await project(of)).health?.state === "asleep" && (await running(of)).length === 0,
    "it sleeps, and nothing of it runs",
  );
/** The server of a preview's data stops once the preview sleeps. */
async function dataSleeps(): Promise<void> {
  await fallsAsleep(preview);
  await eventually(() => servers() === 1, "the server of its data has stopped");
}

test("an application without requests stops, and the next requests wait until it has started", async () => {
  assert.equal(servers(), 2);
  await visit(preview);
  const before = await visit();
  for (const each of [slug, preview])
    await platform.call("PUT", `/v1/projects/${each}/settings`, { sleep_after_minutes: 1 });
  await fallsAsleep();
  const answers = await Promise.all(Array.from({ length: 20 }, visit));
  const starts = new Set(answers.map(({ started }) => started));
  assert.equal(starts.size, 1, "it was started once");
  assert.ok((answers[0]?.started ?? 0) > before.started);
  await eventually(async () => (await project()).health?.state === "healthy", "it is awake");
  await dataSleeps();
  assert.equal((await visit(preview)).starts, 3, "the application starts after its database");
});

test("a control plane that was killed leaves what sleeps asleep, and wakes it after its start", async () => {
  await fallsAsleep();
  await platform.end("SIGKILL");
  const { status, headers } = await platform.visit(slug);
  assert.deepEqual([status, headers["x-berth-error"]], [503, "asleep"], "nobody could start it");
  await platform.restart();
  assert.equal((await project()).health?.state, "asleep");
  await visit();
  await dataSleeps();
  const command = `node -e 'new (require("pg").Pool)({ connectionString: process.env.DATABASE_URL }).query("select 1").then(() => process.exit())'`;
  const path = `/v1/projects/${preview}/runs`;
  const run = await platform.call<{ run: { status: string } }>("POST", path, { command, wait_seconds: 60 });
  assert.equal(run.body.run?.status, "succeeded", JSON.stringify(run.body));
});
