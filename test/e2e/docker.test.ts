import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { provideImage } from "../../tools/images/provide-image.ts";
import { startTestEngine, withoutDocker, type TestEngine } from "../support/docker-engine.ts";
import { liveApp } from "./apps.ts";
import { createApp, startPlatform, type TestApp, type TestPlatform } from "./platform.ts";
import { eventually } from "../support/eventually.ts";
import { failures, startTraffic } from "./traffic.ts";

/** A push, its traffic and the loss of each part, with BERTH_RUNTIME=docker. */
describe("a platform on a Docker engine", { skip: withoutDocker }, () => {
  let engine: TestEngine;
  let platform: TestPlatform;
  let live: TestApp;
  let nodeImage: string;
  const versions = (body: string) => /^v\d/.test(body);
  before(async () => {
    engine = await startTestEngine();
    nodeImage = await provideImage(engine.socket, "node");
    platform = await startPlatform({
      ...{ BERTH_RUNTIME: "docker", BERTH_DOCKER_SOCKET: engine.socket, BERTH_NODE_IMAGE: nodeImage },
      BERTH_SHARED_IMAGES: nodeImage,
    });
    live = await createApp(platform, "live", liveApp({ version: "v1" }));
  });
  after(async () => {
    await platform.destroy();
    await engine.close();
  });

  test("says that containers run what is pushed", async () => {
    const { body } = await platform.call<{ platform: { runtime: string; isolation: string[]; missing: unknown[] } }>(
      "GET",
      "/v1/me",
    );
    assert.equal(body.platform.runtime, "docker");
    assert.ok(body.platform.isolation.includes("read_only_root"));
    assert.deepEqual(body.platform.missing, []);
  });

  test("a push builds an image, runs it in a container and goes live", async () => {
    const pushed = await live.push();
    assert.equal(pushed.exitCode, 0, pushed.stderr);
    assert.match((await platform.visit("live")).body, /^v1/);
  });

  test("a Dockerfile's own command serves, and reaches the project's database", async () => {
    const app = await createApp(platform, "dockered", {
      Dockerfile: `FROM ${nodeImage}\nWORKDIR /srv/site\nCOPY server.js .\nEXPOSE 3000\nCMD ["node", "server.js"]\n`,
      // The first byte of PostgreSQL's answer to a request for TLS.
      "server.js": `const net = require("node:net");
        require("node:http").createServer((request, response) => {
          const socket = net.connect(Number(process.env.PGPORT), process.env.PGHOST, () => socket.write(Buffer.from([0, 0, 0, 8, 4, 210, 22, 47])));
          socket.once("data", (data) => { response.end("database said " + data.toString()); socket.destroy(); });
          socket.once("error", (error) => response.end(error.message));
        }).listen(process.env.PORT);`,
    });
    assert.equal((await platform.call("POST", "/v1/projects/dockered/database")).status, 201);
    const pushed = await app.push();
    assert.equal(pushed.exitCode, 0, pushed.stderr);
    assert.match((await platform.visit("dockered")).body, /^database said [SN]$/);
  });

  test("no request is lost over a push, a rollback, a killed control plane and a killed engine", async () => {
    const traffic = startTraffic(platform.edgePort, ["live"], 20);
    await live.commit(liveApp({ version: "v2" }));
    const pushed = await live.push();
    assert.equal(pushed.exitCode, 0, pushed.stderr);
    assert.equal((await platform.call("POST", "/v1/projects/live/rollback")).status, 200);
    await engine.end("SIGKILL");
    const parts = async () => {
      const { body } = await platform.call<{ platform: { missing: { part: string }[] } }>("GET", "/v1/me");
      return body.platform.missing.map(({ part }) => part);
    };
    assert.deepEqual(await parts(), ["engine"]);
    await engine.begin();
    await platform.end("SIGKILL");
    await platform.restart();
    await eventually(async () => (await platform.visit("live")).body.startsWith("v1"), "the application answers");
    const answers = await traffic.stop();
    assert.deepEqual(await parts(), []);
    assert.ok(answers.length > 0);
    assert.deepEqual(failures(answers, versions).slice(0, 3), []);
  });
});
