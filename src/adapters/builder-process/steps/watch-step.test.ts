import assert from "node:assert/strict";
import { test } from "node:test";
import type { Step } from "../../../detection/plan.ts";
import { watchStep } from "./watch-step.ts";

test("a silent step reports every 10 s that it goes on, which does not count as output of its own", (t) => {
  t.mock.timers.enable({ apis: ["setInterval", "Date"] });
  const pass = (seconds: number) => {
    for (let second = 0; second < seconds; second += 1) t.mock.timers.tick(1000);
  };
  const lines: string[] = [];
  let kills = 0;
  const context = {
    limits: { silenceMs: 35_000 },
    time: { signal: new AbortController().signal },
    log: { detail: (line: string) => void lines.push(line) },
  };
  const step = { args: ["go", "build"] } as unknown as Step;
  let used = 0;
  const watch = watchStep(context, step, { kill: () => (kills += 1), cpuSeconds: () => used });
  pass(9);
  watch.heard();
  pass(9);
  assert.deepEqual(lines, []);
  pass(11);
  assert.deepEqual(lines, ["still running after 19 s: go build", "still running after 29 s: go build"]);
  assert.deepEqual([watch.wasSilent(), kills], [false, 0]);
  used = 8;
  pass(30);
  assert.deepEqual([watch.wasSilent(), kills], [false, 0], "it computes");
  pass(16);
  assert.deepEqual([watch.wasSilent(), kills], [true, 1]);
  watch.stop();
});
