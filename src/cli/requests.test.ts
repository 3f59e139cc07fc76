import assert from "node:assert/strict";
import { test } from "node:test";
import { cliUser } from "../../test/support/cli.ts";
import { goodToken, startScriptedPlatform } from "../../test/support/scripted-platform.ts";

const request = {
  ...{ at: "2026-01-31T09:00:00.000Z", method: "GET", path: "/cart", status: 503, ms: 1234.5, bytes: 2048 },
  ...{ deployment: 7, replica: 1, request_id: "abc", weight: 1 },
};

test("berth requests shows single requests, with the filters of its options", async () => {
  const queries: unknown[] = [];
  await using platform = await startScriptedPlatform({
    "requests.list": ({ query }) => {
      queries.push(Object.fromEntries(query));
      return { requests: [request] };
    },
  });
  await using user = await cliUser({ url: platform.url, token: goodToken });
  const { stdout, exitCode } = await user.berth([
    "requests",
    "-p",
    "demo",
    "--status",
    "5xx",
    "--slow",
    "500",
    "--path",
    "/cart",
    "--since",
    "1h",
    "-n",
    "5",
  ]);
  assert.equal(exitCode, 0);
  assert.match(stdout, /09:00:00\.000Z +503 +GET +\/cart +1\.2 s +2\.0 KiB +#7\.1 +abc/);
  assert.deepEqual(queries, [{ path: "/cart", status: "5xx", slow_ms: "500", since: "1h", limit: "5" }]);
});

test("--paths shows a row for each path, and says when counts are estimates", async () => {
  const paths = [{ method: "GET", path: "/items/:id", count: 120, p50_ms: 3, p95_ms: 2500, errors: 4 }];
  await using platform = await startScriptedPlatform({
    "requests.paths": () => ({ from: request.at, requests: 120, sampled: true, paths }),
  });
  await using user = await cliUser({ url: platform.url, token: goodToken });
  const shown = await user.berth(["requests", "-p", "demo", "--paths", "--sort", "slow"]);
  assert.match(shown.stdout, /GET +\/items\/:id +120 +3 ms +2\.5 s +4/);
  assert.match(shown.stderr, /estimates/);
  const wrong = await user.berth(["requests", "-p", "demo", "--sort", "slow"]);
  assert.match(wrong.stderr, /--sort needs --paths/);
  const unknown = await user.berth(["requests", "-p", "demo", "--paths", "--sort", "luck"]);
  assert.equal(unknown.exitCode, 2);
  assert.match(unknown.stderr, /Allowed choices are .*slow/);
});
