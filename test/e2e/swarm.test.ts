// Runs alone: engines with the fixed ports of a swarm, and requests of which none may be lost.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { provideImage } from "../../tools/images/provide-image.ts";
import { runsAll } from "../support/draw-cases.ts";
import { withoutDocker } from "../support/docker-engine.ts";
import { edgeLacks } from "../support/edges.ts";
import { eventually } from "../support/eventually.ts";
import { freePort } from "../support/free-port.ts";
import { startMachines, type TestMachine, type TestMachines } from "../support/machines.ts";
import { withoutRegistry } from "../support/registry.ts";
import { liveApp } from "./apps.ts";
import { createApp, startPlatform, type TestApp, type TestPlatform } from "./platform.ts";
import { ask, failures, startTraffic } from "./traffic.ts";

const skip =
  withoutDocker || withoutRegistry || (!runsAll && "SKIPPED: a Docker Swarm takes minutes; npm test -- --all runs it");
const replicas = 4;
const perSecond = 50;
const cutMs = 12_000;

/** Three engines in network namespaces as three machines, and a platform beside the one that manages their swarm. */
describe("a platform on a Docker Swarm", { skip }, () => {
  let cluster: TestMachines;
  let platform: TestPlatform;
  let live: TestApp;
  const isAnswer = (body: string) => /^v\d/.test(body);
  const seen = async () => {
    const answers = await Promise.all(
      Array.from({ length: 6 * replicas }, () => ask(platform.edgePort, "live", "/replica")),
    );
    return new Set(answers.map(({ status, body }) => (status === 200 ? body : ""))).size;
  };
  const deploy = async (version: string) => {
    await live.commit(liveApp({ version }));
    const pushed = await live.push();
    assert.equal(pushed.exitCode, 0, pushed.stderr);
  };

  before(async () => {
    cluster = await startMachines(3);
    const [first] = cluster.machines as readonly [TestMachine];
    const image = await provideImage(first.socket, "node");
    platform = await startPlatform({
      ...{ BERTH_RUNTIME: "swarm", BERTH_DOCKER_SOCKET: first.socket, BERTH_NODE_IMAGE: image },
      BERTH_SWARM_REGISTRY_PORT: String(await freePort()),
      BERTH_EDGE: edgeLacks("haproxy") === false ? "haproxy" : "builtin",
    });
    live = await createApp(platform, "live", liveApp({ version: "v1" }));
    await platform.call("PUT", "/v1/projects/live/settings", { storage: false });
  });
  after(async () => {
    await platform?.destroy();
    await cluster?.close();
  });

  test("says what isolates replicas, and that a swarm runs them", async () => {
    const isolated = async () => {
      const { body } = await platform.call<{
        platform: { runtime: string; isolation: string[]; missing: { part: string }[] };
      }>("GET", "/v1/me");
      assert.equal(body.platform.runtime, "swarm");
      // Read off the guard, which may not run yet.
      if (!body.platform.isolation.includes("no_new_privileges")) return undefined;
      return body.platform.missing.map(({ part }) => part);
    };
    assert.deepEqual(await eventually(isolated, "the guard runs"), ["private_app_folder"]);
  });

  test("a push goes live on all machines, and its output comes from all of them", async () => {
    const pushed = await live.push();
    assert.equal(pushed.exitCode, 0, pushed.stderr);
    assert.equal((await platform.call("PUT", "/v1/projects/live/scale", { replicas })).status, 200);
    await eventually(async () => (await seen()) === replicas, `${replicas} replicas answer`);
  });

  test("no request fails while it is deployed, rolled back, and a machine is cut off", async (t) => {
    const traffic = startTraffic(platform.edgePort, ["live"], perSecond);
    t.after(() => traffic.stop());
    await deploy("v2");
    await deploy("v3");
    assert.equal((await platform.call("POST", "/v1/projects/live/rollback")).status, 200);
    await eventually(async () => (await seen()) === replicas, "all replicas answer after the rollback");
    const cut = cluster.machines[2] as TestMachine;
    const begun = Date.now();
    await cut.connect(false);
    await eventually(async () => (await seen()) === replicas, "all replicas answer without the machine");
    t.diagnostic(`all replicas answered ${Date.now() - begun} ms after the cut`);
    await eventually(() => Date.now() - begun > cutMs, "the cut is over");
    await cut.connect(true);
    await deploy("v4");
    await eventually(async () => (await seen()) === replicas, "all replicas answer after the cut");
    const answers = await traffic.stop();
    t.diagnostic(`${answers.length} requests`);
    assert.deepEqual(failures(answers, isAnswer).slice(0, 5), []);
  });
});
