import assert from "node:assert/strict";
import { test } from "node:test";
import { RestartPauses } from "./process-watch.ts";

test("a process that ended starts again at once, then after pauses that double up to 30 s, and at once after a steady minute", () => {
  let now = 0;
  const pauses = new RestartPauses(() => now);
  const waits: number[] = [];
  for (let start = 0; start < 11; start += 1) {
    const endedAt = now;
    while (!pauses.isOver) now += 10;
    waits.push(now - endedAt);
    pauses.note();
  }
  assert.deepEqual(waits, [0, 250, 500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000]);
  now += 61_000;
  assert.ok(pauses.isOver, "it ran for a minute");
  pauses.note();
  assert.ok(!pauses.isOver);
  now += 250;
  assert.ok(pauses.isOver, "the pauses begin anew");
});
