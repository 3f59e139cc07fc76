import assert from "node:assert/strict";
import { setImmediate as pause } from "node:timers/promises";
import { test } from "node:test";
import { mapWithConcurrency } from "./map-with-concurrency.ts";

test("work is done on every item, in order, and on no more at a time than allowed", async () => {
  const begun: number[] = [];
  let under = 0;
  let most = 0;
  await mapWithConcurrency([1, 2, 3, 4, 5, 6, 7], 3, async (item) => {
    begun.push(item);
    most = Math.max(most, (under += 1));
    await pause();
    under -= 1;
  });
  assert.deepEqual(begun, [1, 2, 3, 4, 5, 6, 7]);
  assert.equal(most, 3);
});

test("a fault is told when nothing is under way any more", async () => {
  const done: number[] = [];
  const work = async (item: number) => {
    if (item === 1) throw new Error("one failed");
    await pause();
    done.push(item);
  };
  await assert.rejects(mapWithConcurrency([1, 2, 3], 2, work), /one failed/);
  assert.deepEqual(done, [2, 3]);
});
