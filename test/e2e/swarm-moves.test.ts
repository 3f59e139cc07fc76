// Runs alone: its engine uses the fixed ports of a swarm, and it must not lose a request.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { Result } from "../../src/contract/routes.ts";
import { runsAll } from "../support/draw-cases.ts";
import { eventually } from "../support/eventually.ts";
import { liveApp } from "./apps.ts";
import { createApp, type TestApp } from "./platform.ts";
import { failures, startTraffic, summary } from "./traffic.ts";
import { startVisitedPlatform, wayLacks, type VisitedPlatform } from "./ways.ts";

const way = { runtime: "swarm", over: "http" } as const;
const skip = wayLacks(way) || (!runsAll && "SKIPPED: a Docker Swarm takes minutes; npm test -- --all runs it");

describe("a platform with all three runtimes, on a swarm of one machine", { skip }, () => {
  let platform: VisitedPlatform;
  let live: TestApp;
  const path = "/v1/orgs/main/projects/live/runtime";
  const shown = async () => (await platform.call<Result<"platform.runtime">>("GET", path)).body;
  /** Returns the number of replicas that run as services of the swarm. */
  const inSwarm = async () => {
    const { body } = await platform.call<Result<"platform.machines">>("GET", "/v1/platform/machines");
    return body.machines.map(({ replicas }) => replicas).join();
  };
  const tryMove = async (runtime: string) => {
    assert.equal((await platform.call("PUT", path, { runtime })).status, 201);
    return eventually(async () => {
      const found = await shown();
      return ["done", "failed"].includes(found.move?.status ?? "") && found;
    }, "the move has ended");
  };
  const move = async (runtime: string) => {
    const ended = await tryMove(runtime);
    assert.deepEqual([ended.runtime, ended.move?.status, ended.move?.failure], [runtime, "done", null]);
  };

  before(async () => {
    platform = await startVisitedPlatform(way, ["live"], { BERTH_RUNTIME: "process,docker,swarm" });
    live = await createApp(platform, "live", liveApp({ version: "v1" }));
  });
  after(() => platform?.destroy());

  test("a project moves from processes to the swarm, to Docker, back by a rollback, and to processes without a lost request", async (t) => {
    const pushed = await live.push();
    assert.equal(pushed.exitCode, 0, pushed.stderr);
    assert.deepEqual([(await shown()).runtime, (await shown()).available], ["process", ["process", "docker", "swarm"]]);
    const traffic = startTraffic(platform.entrance, ["live"], 5);
    t.after(() => traffic.stop());
    await move("swarm");
    assert.equal(await inSwarm(), "1");
    await move("docker");
    await eventually(async () => (await inSwarm()) === "0", "the swarm runs nothing");
    assert.equal((await platform.call("POST", "/v1/projects/live/rollback")).status, 200);
    assert.deepEqual([(await shown()).runtime, await inSwarm()], ["swarm", "1"]);
    await move("process");
    await eventually(async () => (await inSwarm()) === "0", "the swarm runs nothing again");
    const answers = await traffic.stop();
    t.diagnostic(summary(answers));
    assert.deepEqual(failures(answers, (body) => body === "v1").slice(0, 3), []);
  });

  test("after a failed move, the project and its next push stay on the old runtime", async (t) => {
    const files = liveApp({ version: "v2" });
    // A replica on the swarm cannot write to its own folder, so this application fails to start there.
    await live.commit({
      ...files,
      "server.js": `require("node:fs").writeFileSync("own.txt", "");\n${files["server.js"]}`,
    });
    const pushed = await live.push();
    assert.equal(pushed.exitCode, 0, pushed.stderr);
    const traffic = startTraffic(platform.entrance, ["live"], 5);
    t.after(() => traffic.stop());
    const { runtime, move: tried } = await tryMove("swarm");
    assert.deepEqual([runtime, tried?.to, tried?.status], ["process", "swarm", "failed"]);
    assert.notEqual(tried?.failure, null);
    await eventually(async () => (await inSwarm()) === "0", "the swarm runs nothing");
    const answers = await traffic.stop();
    t.diagnostic(`${summary(answers)}; ${JSON.stringify(tried?.failure)}`);
    assert.deepEqual(failures(answers, (body) => body === "v2").slice(0, 3), []);
    await live.commit(liveApp({ version: "v3" }));
    const again = await live.push();
    assert.equal(again.exitCode, 0, again.stderr);
    assert.equal((await shown()).runtime, "process");
  });
});
