import assert from "node:assert/strict";
import { test } from "node:test";
import { crashText, foldCrashes } from "./fold-crashes.ts";

const folded = (...places: readonly number[]) =>
  foldCrashes(
    places.map((at) => ({ at, count: 2, outOfMemory: at === 9 ? 1 : 0 })),
    ({ at }) => at,
    { chart: 100, mark: 10 },
  );

test("crashes whose marks would touch are one mark with their number; those outside are left out", () => {
  assert.deepEqual(folded(30, 0, 9, -1, 101, 18), [
    { from: 0, to: 18, count: 6, outOfMemory: 1 },
    { from: 30, to: 30, count: 2, outOfMemory: 0 },
  ]);
  assert.deepEqual(folded(), []);
});

test("crashes are told in words", () => {
  const text = (count: number, outOfMemory: number) => crashText({ count, outOfMemory });
  assert.deepEqual(
    [text(1, 0), text(2, 0), text(1, 1), text(3, 3), text(12, 3)],
    [
      "1 crash",
      "2 crashes",
      "1 crash, out of memory",
      "3 crashes, out of memory",
      "12 crashes, 3 of them out of memory",
    ],
  );
});
