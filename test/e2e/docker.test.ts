import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { runOk } from "../../src/kit/exec.ts";
import { until } from "../../src/kit/until.ts";
import { imageLabels } from "../../src/ports/image-labels.ts";
import { provideImage } from "../../tools/images/provide-image.ts";
import { runsAll } from "../support/draw-cases.ts";
import { startTestEngine, withoutDocker, type TestEngine } from "../support/docker-engine.ts";
import { startTestRegistry, withoutRegistry, type TestRegistry } from "../support/registry.ts";
import { liveApp } from "./apps.ts";
import { createApp, startPlatform, type TestApp, type TestPlatform } from "./platform.ts";
import { eventually, guardMs } from "../support/eventually.ts";
import { failures, startTraffic } from "./traffic.ts";

// Drawn with other container files: every run tests the same rules on the runtime and the builder for processes.

/** Tests pushes, traffic and the loss of each part with BERTH_RUNTIME=docker. */
describe("a platform on a Docker engine", { skip: withoutDocker }, () => {
  let engine: TestEngine;
  let platform: TestPlatform;
  let live: TestApp;
  let nodeImage: string;
  let registry: TestRegistry | undefined;
  const versions = (body: string) => /^v\d/.test(body);
  before(async () => {
    engine = await startTestEngine();
    nodeImage = await provideImage(engine.socket, "node");
    registry = withoutRegistry === false ? await startTestRegistry() : undefined;
    platform = await startPlatform({
      ...{ BERTH_RUNTIME: "docker,process", BERTH_DOCKER_SOCKET: engine.socket, BERTH_BASE_IMAGE: `node=${nodeImage}` },
      BERTH_SHARED_IMAGES: nodeImage,
      ...(registry === undefined ? {} : { BERTH_CA_FILE: registry.caFile, BERTH_PRIVATE_REGISTRIES: registry.host }),
    });
    live = await createApp(platform, "live", liveApp({ version: "v1" }));
  });
  after(async () => {
    await platform?.destroy();
    await registry?.close();
    await engine?.close();
  });

  test("reports that containers run the applications", async () => {
    const { body } = await platform.call<{ platform: { runtime: string; isolation: string[]; missing: unknown[] } }>(
      "GET",
      "/v1/me",
    );
    assert.equal(body.platform.runtime, "docker,process");
    assert.ok(body.platform.isolation.includes("seccomp"));
    assert.deepEqual(body.platform.missing, []);
  });

  test("a push builds an image, runs it in a container and goes live", async () => {
    const pushed = await live.push();
    assert.equal(pushed.exitCode, 0, pushed.stderr);
    assert.match((await platform.visit("live")).body, /^v1/);
  });

  test("the image of a preview serves its project as it is", async () => {
    assert.equal((await platform.call("PUT", "/v1/projects/live/settings", { previews: ["*"] })).status, 200);
    const pushed = await live.push("staging");
    assert.equal(pushed.exitCode, 0, pushed.stderr);
    const preview = "/v1/projects/live/previews/staging";
    const { status } = await platform.call("POST", `${preview}/promote`);
    assert.equal(status, 201);
    await eventually(async () => {
      const { body } = await platform.call<{ active_deployment: { number: number } }>("GET", "/v1/projects/live");
      return body.active_deployment.number === 2;
    }, "the preview's image is live");
    assert.match((await platform.visit("live")).body, /^v1/);
  });

  test("the command of a Dockerfile serves requests, and it and the build reach the project's database", async () => {
    const app = await createApp(platform, "dockered", {
      Dockerfile: `FROM ${nodeImage}\nWORKDIR /srv/site\nCOPY server.js build.js ./\nARG PGHOST PGPORT\nRUN node build.js > said\nEXPOSE 3000\nCMD ["node", "server.js"]\n`,
      "build.js": `const socket = require("node:net").connect(Number(process.env.PGPORT), process.env.PGHOST, () => socket.write(Buffer.from([0, 0, 0, 8, 4, 210, 22, 47])));
        socket.once("data", (data) => { process.stdout.write("and to its build " + data.toString()); socket.destroy(); });`,
      // Responds with the first byte of PostgreSQL's reply to a TLS request.
      "server.js": `const net = require("node:net");
        require("node:http").createServer((request, response) => {
          const socket = net.connect(Number(process.env.PGPORT), process.env.PGHOST, () => socket.write(Buffer.from([0, 0, 0, 8, 4, 210, 22, 47])));
          socket.once("data", (data) => { response.end("database said " + data.toString() + " " + require("node:fs").readFileSync("said")); socket.destroy(); });
          socket.once("error", (error) => response.end(error.message));
        }).listen(process.env.PORT);`,
    });
    assert.equal((await platform.call("POST", "/v1/projects/dockered/database")).status, 201);
    const pushed = await app.push();
    assert.equal(pushed.exitCode, 0, pushed.stderr);
    assert.match((await platform.visit("dockered")).body, /^database said [SN] and to its build [SN]$/);
  });

  test("an image of a private registry goes live at the port that it exposes", { skip: withoutRegistry }, async () => {
    const { host, username, password, push } = registry as TestRegistry;
    const members = [
      { path: "bin/busybox", text: readFileSync("/bin/busybox"), mode: 0o755 },
      { path: "www/index.html", text: "pulled" },
    ];
    const Cmd = ["/bin/busybox", "httpd", "-f", "-p", "8123", "-h", "/www"];
    await push("acme/site:1", { members, config: { Cmd, ExposedPorts: { "8123/tcp": {} } } });
    await platform.call("POST", "/v1/projects", { slug: "pulled", name: "Pulled" });
    const deploy = async () => {
      const image = `${host}/acme/site:1`;
      const { body } = await platform.call("POST", "/v1/projects/pulled/deployments", { image });
      const outcome = async () => {
        const { body: build } = await platform.call<Outcome>("GET", `/v1/builds/${String(body["build_id"])}`);
        const status = build.status === "succeeded" ? (build.deployment?.status ?? "none") : build.status;
        assert.ok(["queued", "running", "none", "pending", "starting", "active", "failed"].includes(status), status);
        return ["active", "failed"].includes(status) ? { status, code: build.failure?.code } : undefined;
      };
      return until(outcome, { timeoutMs: guardMs });
    };
    assert.deepEqual(await deploy(), { status: "failed", code: "parent_image_unavailable" });
    await platform.call("PUT", `/v1/registries/${host}`, { username, password });
    assert.deepEqual(await deploy(), { status: "active", code: undefined });
    assert.equal((await platform.visit("pulled")).body, "pulled");
    assert.ok(!platform.output().includes(password));
  });

  test("a project moves to the other runtime and back without a lost request", async (t) => {
    const traffic = startTraffic(platform.edgePort, ["live"], 5);
    t.after(() => traffic.stop());
    const runtime = async () => (await platform.call<Moved>("GET", "/v1/orgs/main/projects/live/runtime")).body;
    assert.equal((await runtime()).runtime, "docker");
    const to = { runtime: "process" };
    assert.equal((await platform.call("PUT", "/v1/orgs/main/projects/live/runtime", to)).status, 201);
    const moved = await eventually(async () => {
      const found = await runtime();
      return ["done", "failed"].includes(found.move?.status ?? "") && found;
    }, "the move has ended");
    assert.deepEqual([moved.runtime, moved.move?.status, moved.move?.failure], ["process", "done", null]);
    assert.equal((await platform.call("PUT", "/v1/orgs/main/projects/live/runtime", to)).status, 409);
    const preview = "/v1/projects/live/previews/staging";
    const { body: promoted } = await platform.call<{ build_id: string }>("POST", `${preview}/promote`);
    const isRefused = async () => {
      const { body } = await platform.call<{ log: string }>("GET", `/v1/builds/${promoted.build_id}/logs`);
      return body.log.includes("is for the runtime docker, and the project runs on process");
    };
    await eventually(isRefused, "an image for the other runtime is not promoted");
    assert.equal((await live.push("staging-2")).exitCode, 0);
    const ofPreview = await platform.call<Moved>("GET", "/v1/orgs/main/projects/staging-2--live/runtime");
    assert.equal(ofPreview.body.runtime, "process", "a preview runs where its project does");
    for (const branch of ["staging", "staging-2"])
      assert.equal((await platform.call("DELETE", `/v1/projects/live/previews/${branch}`)).status, 204);
    assert.equal((await platform.call("POST", "/v1/projects/live/rollback")).status, 200);
    assert.equal((await runtime()).runtime, "docker");
    const answers = await traffic.stop();
    assert.ok(answers.length > 0);
    assert.deepEqual(failures(answers, versions).slice(0, 3), []);
  });

  test(
    "pruning keeps the images of the active deployment and of the five successful ones before it, and a rollback to each works",
    {
      skip: !runsAll && "SKIPPED: it takes eight builds; npm test -- --all runs it",
    },
    async () => {
      const app = await createApp(platform, "pruned", {});
      for (let version = 1; version <= 8; version += 1) {
        await app.commit(liveApp({ version: `v${version}` }));
        assert.equal((await app.push()).exitCode, 0);
      }
      const { body } = await platform.call<{ id: string }>("GET", "/v1/projects/pruned");
      const images = async () => {
        const filters = { label: [`${imageLabels.project}=${body.id}`] };
        return (await engine.api.call<readonly unknown[]>({ path: "/images/json", query: { filters } })).length;
      };
      assert.equal(await images(), 8);
      // The control plane prunes images at each start.
      await platform.end("SIGKILL");
      await platform.restart();
      await eventually(async () => (await images()) === 6, "two images are gone");
      for (let version = 7; version >= 3; version -= 1) {
        assert.equal((await platform.call("POST", "/v1/projects/pruned/rollback")).status, 200);
        assert.match((await platform.visit("pruned")).body, new RegExp(`^v${version}`));
      }
      assert.equal((await platform.call("POST", "/v1/projects/pruned/rollback")).body["code"], "nothing_to_roll_back");
      assert.equal(await images(), 6);
    },
  );

  test("a log that grows without end keeps its newest lines and counts the dropped ones; another application is not affected", async (t) => {
    const flood = await createApp(platform, "flood", {
      "package.json": JSON.stringify({ name: "flood", scripts: { start: "node server.js" } }),
      "server.js": `let number = 0;
        const line = () => "line " + (number += 1) + " " + "x".repeat(200) + "\\n";
        const more = () => process.stdout.write(Array.from({ length: 500 }, line).join(""), more);
        require("node:http").createServer((request, response) => response.end(String(number))).listen(process.env.PORT, more);`,
    });
    const traffic = startTraffic(platform.edgePort, ["live"], 5);
    t.after(() => traffic.stop());
    assert.equal((await flood.push()).exitCode, 0);
    const lines = async (slug: string, more = "") => {
      const path = `/v1/projects/${slug}/logs?limit=1000${more}`;
      return (await platform.call<{ lines: { text: string }[] }>("GET", path)).body.lines.map(({ text }) => text);
    };
    const numbers = (texts: readonly string[]) =>
      texts.flatMap((text) => /^line (\d+) /.exec(text)?.[1] ?? []).map(Number);
    // Wait until the application has written more than the engine keeps, then for lines written after that in the log.
    const written = await eventually(async () => {
      const found = Number((await platform.visit("flood")).body);
      return found * 200 > 64 * 1024 ** 2 && found;
    }, "the engine has rotated its log files");
    const found = await eventually(async () => {
      const texts = await lines("flood");
      return Math.max(0, ...numbers(texts)) > written && texts;
    }, "the newest lines are in the log");
    assert.deepEqual(
      numbers(found),
      numbers(found).toSorted((a, b) => a - b),
    );
    await eventually(
      async () => (await lines("flood", "&grep=dropped")).length > 0,
      "the log counts the dropped lines",
    );
    // Meanwhile, the release command of the other application reports its output.
    await live.commit(liveApp({ version: "v1 again", releaseMs: 10 }));
    assert.equal((await live.push()).exitCode, 0);
    assert.equal((await platform.call("POST", "/v1/projects/live/rollback")).status, 200);
    const answers = await traffic.stop();
    assert.ok(answers.length > 0);
    assert.deepEqual(failures(answers, versions).slice(0, 3), []);
    const { stdout } = await runOk({ file: "du", args: ["-sB1", "--apparent-size", join(platform.dataDir, "logs")] });
    assert.ok(Number.parseInt(stdout, 10) < 256 * 1024 ** 2, stdout);
    assert.equal((await platform.call("DELETE", "/v1/projects/flood")).status, 200);
  });

  test("a push and a restart that are made while the engine is down wait for it", async (t) => {
    const { body: before } = await platform.call<Listed>("GET", "/v1/projects/live/deployments");
    await engine.end();
    let isDown = true;
    t.after(() => (isDown ? engine.begin() : undefined));
    const restarting = platform.call("POST", "/v1/projects/dockered/restart", {});
    await live.commit(liveApp({ version: "v1 after the engine was down" }));
    const pushing = live.push();
    const states = async (slug: string) =>
      (await platform.call<Listed>("GET", `/v1/projects/${slug}/deployments`)).body.deployments[0]?.status;
    await eventually(async () => (await states("dockered")) === "starting", "the restart waits");
    const waits = async () => {
      const { builds } = (
        await platform.call<{ builds: { id: string; status: string }[] }>("GET", "/v1/projects/live/builds")
      ).body;
      const [build] = builds;
      if (build?.status !== "running") return false;
      const { body } = await platform.call<{ log: string }>("GET", `/v1/builds/${build.id}/logs`);
      return body.log.includes("Waiting: ");
    };
    await eventually(waits, "the push's build waits and says so");
    await engine.begin();
    isDown = false;
    const pushed = await pushing;
    assert.equal(pushed.exitCode, 0, pushed.stderr);
    assert.doesNotMatch(pushed.stderr, /internal error/);
    const restarted = await restarting;
    assert.equal(restarted.status, 200, JSON.stringify(restarted.body));
    assert.match((await platform.visit("live")).body, /^v1 after/);
    const { body: now } = await platform.call<Listed>("GET", "/v1/projects/live/deployments");
    assert.deepEqual(
      now.deployments.slice(1).map(({ id, status }) => [id, status === "failed"]),
      before.deployments.map(({ id, status }) => [id, status === "failed"]),
    );
  });

  test("a rollback to a deployment whose image was removed from the engine says that the image is gone, and changes nothing", async () => {
    await live.commit(liveApp({ version: "v1 whose image stays" }));
    assert.equal((await live.push()).exitCode, 0);
    const { deployments } = (await platform.call<Listed>("GET", "/v1/projects/live/deployments")).body;
    const target = deployments.find(({ status }) => status === "retired");
    const image = target?.image_ref ?? "";
    const ended = { filters: { ancestor: [image] } };
    const running = async () => (await engine.api.call<unknown[]>({ path: "/containers/json", query: ended })).length;
    await eventually(async () => (await running()) === 0, "the earlier deployment's container has ended");
    await engine.api.call({ method: "DELETE", path: `/images/${image}`, query: { force: true } });
    const rolled = await platform.call("POST", "/v1/projects/live/rollback");
    assert.equal(rolled.status, 503, JSON.stringify(rolled.body));
    assert.match(
      String(rolled.body["error"]),
      /The image of commit [0-9a-f]{8} is gone from this machine; nothing was switched/,
    );
    assert.match((await platform.visit("live")).body, /^v1 whose image stays/);
  });

  test("no request is lost during a push, a rollback, and kills of the control plane and the engine", async (t) => {
    const traffic = startTraffic(platform.edgePort, ["live"], 20);
    t.after(() => traffic.stop());
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
    await eventually(async () => (await platform.visit("live")).body.startsWith("v1"), "the application responds");
    const answers = await traffic.stop();
    assert.deepEqual(await parts(), []);
    assert.ok(answers.length > 0);
    assert.deepEqual(failures(answers, versions).slice(0, 3), []);
  });
});

interface Listed {
  readonly deployments: readonly { readonly id: string; readonly status: string; readonly image_ref: string }[];
}

interface Moved {
  readonly runtime: string | null;
  readonly move: { readonly status: string; readonly failure: unknown } | null;
}

interface Outcome {
  readonly status: string;
  readonly failure: { readonly code: string } | null;
  readonly deployment: { readonly status: string } | null;
}
