import assert from "node:assert/strict";
import { test } from "node:test";
import { createFaultIsolation } from "./fault-isolation.ts";
import { silentLog } from "./log.ts";

test("a fault is logged when it begins, not while it lasts, and again when it comes back", async () => {
  const logged: unknown[] = [];
  const runIsolated = createFaultIsolation({ ...silentLog, error: ({ of }) => logged.push(of) }, "failed");
  const fail = () => {
    throw new Error("no room");
  };
  assert.equal(await runIsolated("a", fail), false);
  assert.equal(await runIsolated("a", async () => fail()), false);
  assert.equal(await runIsolated("b", () => {}), true);
  assert.deepEqual(logged, ["a"]);
  assert.equal(await runIsolated("a", () => {}), true);
  await runIsolated("a", fail);
  assert.deepEqual(logged, ["a", "a"]);
});
