import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { until } from "../../src/kit/until.ts";
import { guardMs } from "../support/eventually.ts";
import { createApp, nodeApp } from "./platform.ts";
import { inEachWay, startVisitedPlatform, type VisitedPlatform } from "./ways.ts";

// Drawn with other journey files: it starts whole platforms, which takes too long for every run.

let platform: VisitedPlatform;

const answering = `require("node:http").createServer((request, response) => {
  const known = request.headers.authorization === "Bearer " + process.env.CRON_SECRET;
  response.writeHead(known ? 200 : 401).end([request.method, request.url, request.headers.host, known].join(" "));
}).listen(process.env.PORT);`;

interface Run {
  readonly trigger: string;
  readonly status: string;
  readonly http_status: number | null;
  readonly exit_code: number | null;
  readonly scheduled_at: string;
  readonly response_excerpt: string | null;
}

async function ended(trigger: string, job = "tick"): Promise<Run | undefined> {
  return until(
    async () => {
      const { body } = await platform.call<{ runs: Run[] }>("GET", `/v1/projects/demo/cron/${job}/runs`);
      return body.runs.find((run) => run.trigger === trigger && run.status !== "running");
    },
    { timeoutMs: guardMs, atMostMs: 1000 },
  );
}

inEachWay({ possible: ({ over }) => over === "http" }, (way) => {
  before(async () => {
    platform = await startVisitedPlatform(way, ["demo"]);
    const app = await createApp(platform, "demo", { ...nodeApp("x"), "server.js": answering });
    const pushed = await app.push();
    assert.equal(pushed.exitCode, 0, pushed.stderr);
  });
  after(() => platform?.destroy());

  test("a cron job runs a command with the application's variables, and keeps exit code and output", async () => {
    const body = { schedule: "0 0 1 1 *", command: "echo port $PORT; exit 3" };
    assert.equal((await platform.call("PUT", "/v1/projects/demo/cron/report", body)).status, 201);
    assert.equal((await platform.call("POST", "/v1/projects/demo/cron/report/run")).status, 201);
    const run = await ended("manual", "report");
    assert.deepEqual([run?.status, run?.exit_code, run?.http_status], ["failed", 3, null]);
    assert.match(run?.response_excerpt ?? "", /^port \d+\n$/);
  });

  test("a cron job calls the application on demand and on schedule, with a secret that identifies the caller", async () => {
    const body = { schedule: "* * * * *", path: "/tick?now=1" };
    assert.equal((await platform.call("PUT", "/v1/projects/demo/cron/tick", body)).status, 201);
    assert.equal((await platform.call("POST", "/v1/projects/demo/cron/tick/run")).status, 201);
    for (const run of [await ended("manual"), await ended("schedule")]) {
      assert.deepEqual(
        [run?.status, run?.http_status, run?.response_excerpt],
        ["succeeded", 200, "GET /tick?now=1 demo.localhost true"],
      );
    }
  });
});
