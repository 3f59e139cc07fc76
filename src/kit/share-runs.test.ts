import assert from "node:assert/strict";
import { test } from "node:test";
import { shareRuns } from "./share-runs.ts";

test("calls during a run share the next one, which begins after them, and its failure", async () => {
  const ends: ((fails: boolean) => void)[] = [];
  const work = () =>
    new Promise<number>((resolve, reject) => {
      const run = ends.length;
      ends.push((fails) => (fails ? reject(new Error(`run ${run}`)) : resolve(run)));
    });
  const shared = shareRuns(work);
  const first = shared();
  const later = [shared(), shared()];
  assert.equal(ends.length, 1);
  ends[0]?.(false);
  assert.equal(await first, 0);
  assert.equal(ends.length, 2);
  const last = shared();
  ends[1]?.(true);
  for (const each of later) await assert.rejects(each, /run 1/);
  ends[2]?.(false);
  assert.equal(await last, 2);
  const alone = shared();
  ends[3]?.(false);
  assert.equal(await alone, 3);
});
