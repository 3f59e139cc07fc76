import assert from "node:assert/strict";
import { describe, test } from "node:test";
import {
  evaluateClock,
  evaluateDisk,
  evaluateInodes,
  evaluateLoad,
  evaluateMemory,
  memoryWithin,
  parseMeminfo,
} from "./evaluate-machine.ts";

const gib = 1024 ** 3;
const thresholds = { warnPercent: 85, failPercent: 95 };

describe("a disk", () => {
  const disk = (used: number, available: number, reserved = 0) => ({
    total: (used + available + reserved) * gib,
    free: (available + reserved) * gib,
    available: available * gib,
  });
  const table = [
    { name: "is ok below the first threshold", use: disk(84, 16), status: "ok" },
    { name: "is a warning from it on", use: disk(85, 15), status: "warn" },
    { name: "is full from the second one on", use: disk(95, 5), status: "fail" },
    { name: "does not count what is reserved for root as room", use: disk(90, 1, 9), status: "fail" },
    { name: "is full with less than 512 MiB left, however small it is", use: disk(1, 0.4), status: "fail" },
  ] as const;
  for (const { name, use, status } of table) {
    test(name, () => assert.equal(evaluateDisk(use, thresholds).status, status));
  }

  test("names what is free of what can be used, so that its numbers fit", () => {
    assert.match(evaluateDisk(disk(30, 60, 10), thresholds).detail, /^60\.0 GiB of 90\.0 GiB is free .*33 % used/);
  });
});

test("inodes are judged by the same thresholds, and not at all where the file system has no limit", () => {
  const statuses = [100, 15, 5].map((free) => evaluateInodes({ total: 100, free }, thresholds).status);
  assert.deepEqual(statuses, ["ok", "warn", "fail"]);
  assert.equal(evaluateInodes({ total: 0, free: 0 }, thresholds).status, "ok");
});

test("a container's memory counts within its limit, and the machine's without one", () => {
  const machine = { total: 100, available: 50 };
  for (const total of [0, 100, 2 ** 63]) assert.deepEqual(memoryWithin(machine, { total, available: 10 }), machine);
  assert.deepEqual(memoryWithin(machine, { total: 40, available: 30 }), { total: 40, available: 30 });
  assert.deepEqual(memoryWithin(machine, { total: 90, available: 80 }), { total: 90, available: 50 });
});

test("memory is judged by what is available, caches counted as available", () => {
  const text = "MemTotal:       1000 kB\nMemFree:          10 kB\nMemAvailable:    500 kB\nBuffers: 0 kB\n";
  assert.deepEqual(parseMeminfo(text), { total: 1_024_000, available: 512_000 });
  assert.equal(evaluateMemory(parseMeminfo(text), thresholds).status, "ok");
  assert.equal(evaluateMemory({ total: 100, available: 12 }, thresholds).status, "warn");
  assert.equal(evaluateMemory({ total: 100, available: 4 }, thresholds).status, "fail");
  assert.match(evaluateMemory({ total: 100, available: 0 }, thresholds).detail, /^100 % of 100 B is in use/);
});

test("a text that says nothing about memory is no answer", () => {
  assert.throws(() => parseMeminfo("MemTotal: 1000 kB\n"));
});

test("load is a warning per processor and never a failure", () => {
  assert.equal(evaluateLoad(15, 4, 4).status, "ok");
  assert.equal(evaluateLoad(16, 4, 4).status, "warn");
  assert.equal(evaluateLoad(10_000, 4, 4).status, "warn");
});

describe("a clock", () => {
  const table = [
    { off: 200, window: 5, status: "ok" },
    { off: -1500, window: 5, status: "warn" },
    { off: 1500, window: 900, status: "ok" },
    { off: -60_000, window: 5, status: "fail" },
  ] as const;
  for (const { off, window, status } of table) {
    test(`that differs by ${off} ms, known to ${window} ms, is ${status}`, () =>
      assert.equal(evaluateClock(off, window).status, status));
  }
});
