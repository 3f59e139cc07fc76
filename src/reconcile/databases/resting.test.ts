import assert from "node:assert/strict";
import { test } from "node:test";
import { emptyDisk } from "../../../test/support/test-platform.ts";
import { createResting } from "./resting.ts";

const mib = 1024 ** 2;
let nowMs = 0;
const resting = createResting(() => nowMs);
const small = { bytes: 10 * mib, limitBytes: 100 * mib };
const disk = (available: number) => ({
  ...emptyDisk,
  observe: async () => ({ total_bytes: 9000 * mib, available_bytes: available, is_short: false, is_full: false }),
});

test("a database in order rests for half a minute, unless it is near its limit", () => {
  assert.equal(resting.isResting("one"), false);
  resting.rest("one", small);
  resting.rest("large", { bytes: 60 * mib, limitBytes: 100 * mib });
  assert.deepEqual([resting.isResting("one"), resting.isResting("large")], [true, false]);
  nowMs += 31_000;
  assert.equal(resting.isResting("one"), false);
  resting.rest("one", small);
  resting.wake("one");
  assert.equal(resting.isResting("one"), false);
});

test("when much was written to the disk, by many small writes too, no database rests", async () => {
  await resting.begin(disk(1000 * mib));
  resting.rest("one", small);
  await resting.begin(disk(960 * mib));
  assert.equal(resting.isResting("one"), true);
  await resting.begin(disk(930 * mib));
  assert.equal(resting.isResting("one"), false);
  resting.rest("one", small);
  await resting.begin(disk(920 * mib));
  assert.equal(resting.isResting("one"), true);
});
