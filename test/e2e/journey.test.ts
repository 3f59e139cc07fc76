// Drawn with other journey files: the conformance test takes the same steps in every run.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { eventually } from "../support/eventually.ts";
import { createApp, nodeApp, type TestApp } from "./platform.ts";
import { inEachWay, startVisitedPlatform, type VisitedPlatform } from "./ways.ts";

let platform: VisitedPlatform;
let app: TestApp;

inEachWay({ possible: ({ over }) => over === "http" }, (way) => {
  before(async () => {
    platform = await startVisitedPlatform(way, ["demo"]);
    app = await createApp(platform, "demo", nodeApp("one"));
  });
  after(() => platform.destroy());

  test("a push builds, goes live and reports it; exit code 0 means live", async () => {
    const pushed = await app.push();
    assert.equal(pushed.exitCode, 0, pushed.stderr);
    assert.match(pushed.stderr, /remote: -----> Live at http:\/\/demo\.localhost:/);
    assert.deepEqual(pick(await platform.visit("demo")), [200, "one"]);
  });

  test("the stored build log equals the output of the push", async () => {
    await app.commit(nodeApp("two"));
    const pushed = await app.push();
    const { body } = await platform.call<{ builds: { id: string; status: string }[] }>(
      "GET",
      "/v1/projects/demo/builds",
    );
    assert.equal(body.builds[0]?.status, "succeeded");
    const log = await platform.call<{ log: string; complete: boolean }>("GET", `/v1/builds/${body.builds[0]?.id}/logs`);
    const stored = log.body.log
      .trimEnd()
      .split("\n")
      .map((line) => line.trimEnd());
    assert.deepEqual(stored, remoteLines(pushed.stderr));
    assert.equal(log.body.complete, true);
  });

  test("a rollback serves the earlier image again, without a build", async () => {
    const builds = async () =>
      (await platform.call<{ builds: unknown[] }>("GET", "/v1/projects/demo/builds")).body.builds.length;
    const before = await builds();
    const answer = await platform.call("POST", "/v1/projects/demo/rollback");
    assert.equal(answer.status, 200, JSON.stringify(answer.body));
    assert.equal(answer.body["status"], "rolled_back");
    assert.deepEqual(pick(await platform.visit("demo")), [200, "one"]);
    assert.equal(await builds(), before);
    assert.equal((await platform.call("POST", "/v1/projects/demo/rollback")).body["code"], "nothing_to_roll_back");
  });

  test("a broken push exits non-zero, moves no branch, and the old deployment keeps serving", async () => {
    await app.commit(nodeApp("three", "process.exit(3);"));
    const pushed = await app.push();
    assert.notEqual(pushed.exitCode, 0);
    assert.match(pushed.stderr, /pre-receive hook declined/);
    assert.match(pushed.stderr, /crash_on_boot/);
    assert.deepEqual(pick(await platform.visit("demo")), [200, "one"]);
  });

  test("setting a variable restarts the application with it", async () => {
    const shown = nodeApp("x");
    shown["server.js"] =
      `require("node:http").createServer((q, s) => s.end(process.env.GREETING ?? "none")).listen(process.env.PORT);`;
    await app.commit(shown);
    assert.equal((await app.push()).exitCode, 0);
    assert.equal((await platform.call("PUT", "/v1/projects/demo/env/GREETING", { value: "hello there" })).status, 204);
    await eventually(async () => (await platform.visit("demo")).body === "hello there", "the new text is served");
    // The edge serves a new deployment shortly before its status becomes active.
    await eventually(async () => (await newest()).status === "active", "its deployment is active");
  });

  async function newest() {
    const { body } = await platform.call<{ deployments: { status: string }[] }>("GET", "/v1/projects/demo/deployments");
    return body.deployments[0] ?? { status: "none" };
  }

  test("a deleted project responds 503 no-store; undelete restores the same deployment", async () => {
    const active = async () =>
      (await platform.call<{ active_deployment: { id: string } | null }>("GET", "/v1/projects/demo")).body
        .active_deployment?.id;
    const before = await active();
    assert.equal((await platform.call("DELETE", "/v1/projects/demo")).status, 200);
    await eventually(async () => (await platform.visit("demo")).status === 503, "the deleted project responds 503");
    assert.match(String((await platform.visit("demo")).headers["cache-control"]), /no-store/);
    assert.equal((await platform.call("POST", "/v1/projects/demo/undelete")).status, 200);
    const statuses = new Set<number>();
    const serves = async () => {
      const { status } = await platform.visit("demo");
      statuses.add(status);
      return status === 200;
    };
    await eventually(serves, "the restored project responds 200");
    assert.deepEqual(
      [...statuses].filter((status) => status !== 503),
      [200],
      "no request goes to a stopped replica",
    );
    assert.equal(await active(), before);
  });

  test("an unknown host is a 404 page", async () => {
    assert.equal((await platform.visit("nobody")).status, 404);
  });

  test("applications survive a killed control plane, and a restarted one finds them", async () => {
    await platform.end("SIGKILL");
    assert.equal((await platform.visit("demo")).status, 200);
    await platform.restart();
    assert.equal((await platform.visit("demo")).status, 200);
    const { body } = await platform.call<{ deployments: { status: string }[] }>("GET", "/v1/projects/demo/deployments");
    assert.equal(body.deployments.filter((each) => each.status === "active").length, 1);
  });
});

function pick(visit: { status: number; body: string }): [number, string] {
  return [visit.status, visit.body];
}

function remoteLines(stderr: string): string[] {
  return stderr
    .split("\n")
    .filter((line) => line.startsWith("remote: "))
    .map((line) => line.slice("remote: ".length).trimEnd())
    .filter((line) => line !== "");
}
