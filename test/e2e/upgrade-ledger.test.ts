// Drawn with other operation files: it upgrades a platform five times under load, which only --all does.
import assert from "node:assert/strict";
import { Agent } from "node:http";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { runsAll } from "../support/draw-cases.ts";
import { notesApp } from "./apps.ts";
import { killAfterSteps, killedAfter, startInstalled } from "./installed.ts";
import { askReady, createApp } from "./platform.ts";
import { ask, startAsking, summary } from "./traffic.ts";

const next = "sql/9001-next.sql";
const expands = { [next]: "-- expand\nalter table platform_fact add column more text;\n" };
const slugs = Array.from({ length: 10 }, (_, index) => `notes-${index}`);
const perSecond = 200;
const readyWithinMs = 60_000;

const skip = !runsAll && "SKIPPED: ten projects at 200 requests a second take minutes; npm test -- --all runs it";

test("ten projects with databases lose neither a request nor a row, whatever an upgrade meets", { skip }, async (t) => {
  const platform = await startInstalled({
    "0.1.0": {},
    "0.2.0": expands,
    "0.3.0": { ...expands, "src/daemon/start.ts": `throw new Error("this version is broken");\n` },
    "0.4.0": { [next]: "-- expand\nalter table no_such_table add column more text;\n" },
  });
  t.after(() => platform.close());
  const { edge } = platform.ground.ports;
  for (const slug of slugs) {
    const app = await createApp({ ...platform, api: platform.ground.api }, slug, notesApp);
    assert.equal((await platform.call("POST", `/v1/projects/${slug}/database`)).status, 201);
    const pushed = await app.push();
    assert.equal(pushed.exitCode, 0, pushed.stderr);
    assert.equal((await ask(edge, slug, "/add")).body, "rows 1 file kept");
  }

  const agent = new Agent({ keepAlive: true, maxSockets: 40 });
  // Each project's every tenth request adds a row.
  const traffic = startAsking(
    (index) => ask(edge, slugs[index % 10] as string, index % 100 < 10 ? "/add" : "/", agent),
    perSecond,
  );
  const ready = watchReadiness(platform.ground.api);
  const wentTo = async (version: string, status: string, runs: string) => {
    const found = await platform.upgradeTo(version);
    assert.deepEqual([found.upgrade.status, found.version], [status, runs], found.upgrade.reason ?? "");
  };
  await wentTo("0.4.0", "failed", "0.1.0");
  await wentTo("0.3.0", "went_back", "0.1.0");
  const killing = killAfterSteps(platform, "0.2.0");
  await wentTo("0.2.0", "done", "0.2.0");
  assert.deepEqual((await killing).toSorted(), killedAfter.toSorted());
  await wentTo("0.1.0", "done", "0.1.0");
  const answers = await traffic.stop();
  const longestMs = await ready.stop();

  assert.deepEqual(answers.filter(({ status }) => status !== 200).slice(0, 5), []);
  for (const [place, slug] of slugs.entries()) {
    const added = answers.filter((_, index) => index % 100 === place).length;
    assert.equal((await ask(edge, slug, "/")).body, `rows ${added + 1} file kept`);
  }
  agent.destroy();
  assert.ok(longestMs < readyWithinMs, `the control plane did not answer for ${longestMs} ms`);
  t.diagnostic(`${summary(answers)}; the control plane was away for at most ${Math.round(longestMs)} ms`);
});

/** Asks /readyz until `stop`, which returns the longest time in ms without a good answer. */
function watchReadiness(api: string): { stop: () => Promise<number> } {
  let running = true;
  let longestMs = 0;
  const watching = (async () => {
    for (let readyAt = performance.now(); running; await sleep(100)) {
      if (!(await askReady(api).catch(() => false))) continue;
      longestMs = Math.max(longestMs, performance.now() - readyAt);
      readyAt = performance.now();
    }
  })();
  return {
    stop: async () => {
      running = false;
      await watching;
      return longestMs;
    },
  };
}
