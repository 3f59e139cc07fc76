import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { cliUser } from "../../test/support/cli.ts";
import { goodToken, Refusal, startScriptedPlatform } from "../../test/support/scripted-platform.ts";
import type { Result } from "../contract/routes.ts";

const at = "2026-01-02T03:04:00.000Z";
const job: Result<"cron.set"> = {
  id: "job_1",
  name: "nightly",
  schedule: "0 3 * * *",
  path: "/nightly",
  command: null,
  enabled: true,
  last_status: "succeeded",
  last_run_at: at,
  next_run_at: "2126-01-02T03:00:00.000Z",
  created_at: at,
  updated_at: at,
};
const run: Result<"cron.run"> = {
  id: "run_1",
  trigger: "schedule",
  scheduled_at: at,
  started_at: at,
  finished_at: at,
  status: "failed",
  reason: null,
  http_status: 503,
  exit_code: null,
  duration_ms: 12,
  response_excerpt: "busy\u001b[2J\nlater",
};
const script = {
  "cron.list": () => ({ jobs: [job], next_cursor: null }),
  "cron.set": () => job,
  "cron.import": () => ({ imported: 1, jobs: ["nightly"] }),
  "cron.runs": () => ({ runs: [run], next_cursor: "more" }),
  "cron.run": () => ({ ...run, status: "skipped" as const, reason: "overlap" as const }),
  "cron.restore": () => job,
  "cron.delete": () => undefined,
};

async function session(
  work: (
    user: Awaited<ReturnType<typeof cliUser>>,
    platform: Awaited<ReturnType<typeof startScriptedPlatform>>,
  ) => Promise<void>,
): Promise<void> {
  await using platform = await startScriptedPlatform(script);
  await using user = await cliUser({ url: platform.url, token: goodToken });
  await work(user, platform);
}

test("set sends a command instead of a path, and restore tells what the job is now", () =>
  session(async (user, platform) => {
    const set = ["cron", "set", "nightly", "0 3 * * *"];
    assert.equal((await user.berth([...set, "--command", "npm run report", "-p", "demo"])).exitCode, 0);
    const wanted = { schedule: "0 3 * * *", command: "npm run report", enabled: true };
    assert.deepEqual(platform.seen.at(-1)?.body, wanted);
    for (const wrong of [[], ["/nightly", "--command", "true"]])
      assert.equal((await user.berth([...set, ...wrong, "-p", "demo"])).exitCode, 2);
    const { stdout } = await user.berth(["cron", "restore", "nightly", "-p", "demo"]);
    assert.match(stdout, /nightly: 0 3 \* \* \* \/nightly\./);
  }));

test("set sends schedule, path and whether the job is enabled", () =>
  session(async (user, platform) => {
    const { exitCode, stdout } = await user.berth(["cron", "set", "nightly", "0 3 * * *", "/nightly", "-p", "demo"]);
    assert.equal(exitCode, 0);
    assert.match(stdout, /nightly runs next in 99 y/);
    await user.berth(["cron", "set", "nightly", "0 3 * * *", "/nightly", "--disabled", "-p", "demo"]);
    const bodies = platform.seen.map(({ body }) => body);
    const wanted = { schedule: "0 3 * * *", path: "/nightly" };
    assert.deepEqual(bodies, [
      { ...wanted, enabled: true },
      { ...wanted, enabled: false },
    ]);
  }));

test("import takes the crons of vercel.json and nothing else of it", () =>
  session(async (user, platform) => {
    const crons = [{ path: "/nightly", schedule: "0 3 * * *" }];
    await writeFile(join(user.home, "vercel.json"), JSON.stringify({ framework: "x", crons }));
    const { stdout } = await user.berth(["cron", "import", "-p", "demo"]);
    assert.match(stdout, /Imported 1: nightly\./);
    assert.deepEqual(platform.seen[0]?.body, { crons });
    await writeFile(join(user.home, "empty.json"), "{}");
    assert.equal((await user.berth(["cron", "import", "empty.json", "-p", "demo"])).exitCode, 2);
    assert.equal((await user.berth(["cron", "import", "missing.json", "-p", "demo"])).exitCode, 2);
  }));

test("list, runs and run say how it went, and no answer of an application reaches the terminal raw", () =>
  session(async (user) => {
    assert.match((await user.berth(["cron", "-p", "demo"])).stdout, /nightly +0 3 \* \* \* +\/nightly +succeeded/);
    const { stdout, stderr } = await user.berth(["cron", "runs", "nightly", "-p", "demo"]);
    assert.match(stdout, /2026-01-02T03:04:00Z +schedule +failed +503 +12 ms +busy/);
    assert.ok(!stdout.includes("\u001b"));
    assert.match(stderr, /--cursor more/);
    assert.match(
      (await user.berth(["cron", "run", "nightly", "-p", "demo"])).stdout,
      /another run of nightly is under way/,
    );
  }));

test("remove asks for the name unless --yes is said", () =>
  session(async (user, platform) => {
    assert.equal((await user.berth(["cron", "remove", "nightly", "-p", "demo"])).exitCode, 2);
    assert.equal(platform.seen.length, 0);
    assert.equal((await user.berth(["cron", "remove", "nightly", "--yes", "-p", "demo"])).exitCode, 0);
    assert.equal(platform.seen[0]?.name, "cron.delete");
  }));

test("a schedule that the platform refuses is wrong usage", async () => {
  const details = [{ path: "schedule", message: "must have five fields" }];
  await using platform = await startScriptedPlatform({ "cron.set": () => new Refusal("invalid_request", { details }) });
  await using user = await cliUser({ url: platform.url, token: goodToken });
  const { exitCode, stderr } = await user.berth(["cron", "set", "a", "@daily", "/a", "-p", "demo"]);
  assert.equal(exitCode, 2);
  assert.match(stderr, /must have five fields/);
});
