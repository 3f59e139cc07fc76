import assert from "node:assert/strict";
import { test } from "node:test";
import { evaluatePool } from "./part-checks.ts";

const fit = {
  name: "a",
  address: "192.0.2.1",
  state: "ready",
  takes_replicas: true,
  guarded: true,
  replicas: 2,
} as const;
const statusesOf = (...machines: Parameters<typeof evaluatePool>[0]) =>
  evaluatePool(machines).map(({ subject, status }) => [subject, status]);

test("a machine that is down fails by its name and address, one without a guard or a known state is a warning", () => {
  assert.deepEqual(
    statusesOf(
      fit,
      { ...fit, name: "b", state: "down" },
      { ...fit, name: "c", guarded: false },
      { ...fit, name: "d", state: "unknown" },
    ),
    [
      ["", "fail"],
      ["b (192.0.2.1)", "fail"],
      ["c (192.0.2.1)", "warn"],
      ["d (192.0.2.1)", "warn"],
    ],
  );
});

test("a drained machine is as its operator wants it, guarded or not, unless no other takes replicas", () => {
  const drained = { ...fit, takes_replicas: false, guarded: false };
  assert.deepEqual(statusesOf(fit, drained), [["", "ok"]]);
  assert.deepEqual(statusesOf(drained), [["", "fail"]]);
});
