import assert from "node:assert/strict";
import { test } from "node:test";
import { createAttempts } from "./attempts.ts";
import { silentLog } from "./log.ts";

test("a fault is told when it begins, is silent while it lasts, and is told again when it comes back", async () => {
  const told: unknown[] = [];
  const attempt = createAttempts({ ...silentLog, error: ({ of }) => told.push(of) }, "failed");
  const fail = () => {
    throw new Error("no room");
  };
  assert.equal(await attempt("a", fail), false);
  assert.equal(await attempt("a", async () => fail()), false);
  assert.equal(await attempt("b", () => {}), true);
  assert.deepEqual(told, ["a"]);
  assert.equal(await attempt("a", () => {}), true);
  await attempt("a", fail);
  assert.deepEqual(told, ["a", "a"]);
});
