// Drawn with other journey files: it starts two whole platforms, and fifty previews that only `npm test -- --all` waits for.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { Result } from "../../src/contract/routes.ts";
import { pssOf } from "../../tools/bench/memory.ts";
import { processorSeconds } from "../../tools/bench/processor-time.ts";
import { runsAll } from "../support/draw-cases.ts";
import { eventually } from "../support/eventually.ts";
import { createApp, startPlatform, type TestPlatform } from "./platform.ts";
import { processesNaming } from "./processes.ts";

const slug = "bear";
const branches = Array.from({ length: 50 }, (_, n) => `cub-${n}`);
const previews = branches.map((branch) => `${branch}--${slug}`);
const skip = !runsAll && "SKIPPED: it makes fifty previews; npm test -- --all runs it";

/** Does not start without its database. */
const files = {
  "package.json": JSON.stringify({
    ...{ name: slug, private: true, scripts: { start: "node bear-server.js" } },
    dependencies: { pg: "8.23.1" },
  }),
  "bear-server.js": `
const pool = new (require("pg").Pool)({ connectionString: process.env.DATABASE_URL });
pool.on("error", () => {});
pool.query("select 1").then(() =>
  require("node:http").createServer((request, response) => response.end("awake")).listen(process.env.PORT, process.env.HOST));
`,
};

describe("fifty previews asleep", { skip }, () => {
  let platform: TestPlatform;
  let without: TestPlatform;

  before(async () => {
    const settings = { BERTH_PREVIEWS_PER_PROJECT: "50", BERTH_READS_PER_MINUTE: "1000000" };
    [platform, without] = [await startPlatform(settings), await startPlatform(settings)];
    for (const each of [platform, without]) {
      const app = await createApp(each, slug, files);
      assert.equal((await each.call("POST", `/v1/projects/${slug}/database`)).status, 201);
      const chosen = { previews: ["*"], preview_data: "branch" };
      assert.equal((await each.call("PUT", `/v1/projects/${slug}/settings`, chosen)).status, 200);
      for (const branch of each === platform ? ["main", ...branches] : ["main"]) {
        const pushed = await app.push(branch);
        assert.equal(pushed.exitCode, 0, pushed.stderr);
      }
    }
    for (const preview of previews) {
      const path = `/v1/projects/${preview}/settings`;
      assert.equal((await platform.call("PUT", path, { sleep_after_minutes: 1 })).status, 200);
    }
  });
  after(async () => {
    await platform?.destroy();
    await without?.destroy();
  });

  const both = () => [platform, without];

  /** Counts the processes of all applications, and the database servers of projects and branches. */
  const running = ({ dataDir }: TestPlatform) => ({
    applications: processesNaming(`${dataDir}/`).filter(({ commandLine }) => /^\S*node bear-server/.test(commandLine))
      .length,
    servers: processesNaming(`${dataDir}/databases/`).filter(({ commandLine }) =>
      /^\S+\/bin\/postgres -D /.test(commandLine),
    ).length,
  });
  // One after the other: each request at once is a session of the control plane's database, which is then kept.
  const asleep = async () => {
    const states: (string | undefined)[] = [];
    for (const preview of previews)
      states.push((await platform.call<Result<"projects.get">>("GET", `/v1/projects/${preview}`)).body.health?.state);
    return states.filter((state) => state === "asleep").length;
  };
  /** The memory of every process of a platform, in MB. */
  const memory = ({ dataDir, pid }: TestPlatform) =>
    [pid, ...processesNaming(dataDir).map((each) => each.pid)].reduce((sum, each) => sum + pssOf(each), 0);

  it("run nothing, and look at nothing", async (t) => {
    await eventually(async () => (await asleep()) === previews.length, "all are asleep");
    await eventually(() => running(platform).servers === 1, "the servers of their data have stopped");
    assert.deepEqual(running(platform), running(without));
    const before = both().map((each) => processorSeconds(each));
    await sleep(30_000);
    const [ours = 0, theirs = 0] = both().map((each, n) => processorSeconds(each) - (before[n] ?? 0));
    t.diagnostic(`processor time in 30 s: ${ours.toFixed(2)} s, without previews ${theirs.toFixed(2)} s`);
    assert.ok(ours <= theirs * 1.25 + 0.3, `${ours} s of processor time instead of ${theirs} s`);
  });

  it("need little memory", async (t) => {
    // What their pushes left in the control plane's heap is none of their cost.
    for (const each of both()) {
      await each.end("SIGINT");
      await each.restart();
      await eventually(async () => (await each.visit(slug)).body === "awake", "the project serves again");
    }
    await sleep(15_000);
    assert.deepEqual([running(platform), await asleep()], [running(without), previews.length]);
    const more = (memory(platform) - memory(without)) / previews.length;
    t.diagnostic(`${more.toFixed(1)} MB each`);
    assert.ok(more <= 5, `${more} MB of memory each`);
  });

  it("wake one by one: the first request is answered", async () => {
    const { status, body } = await platform.visit(previews[17] ?? "");
    assert.deepEqual([status, body], [200, "awake"]);
    assert.equal(running(platform).servers, 2);
    assert.equal(await asleep(), previews.length - 1);
  });
});
