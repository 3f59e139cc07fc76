import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { openLeases } from "./leases.ts";

test("a number rests until all others were given, also over a restart", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "berth-leases-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const given: number[] = [];
  for (let round = 0; round < 8; round += 1) {
    const leases = openLeases(join(folder, "subnets"), 100, 8);
    const number = await leases.claim(`run-${round}`, async () => true);
    leases.release(number);
    given.push(number);
  }
  assert.deepEqual(
    given.toSorted((a, b) => a - b),
    [100, 101, 102, 103, 104, 105, 106, 107],
  );
});
