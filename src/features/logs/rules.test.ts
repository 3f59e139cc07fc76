import assert from "node:assert/strict";
import { test } from "node:test";
import { instantOf } from "../../kit/instant.ts";
import { createPartCounts, firstWithin, isCursorOf, lineFilter, newestWithin } from "./rules.ts";

test("the newest lines of a page are as many as asked for, at most 2 MiB as JSON, and one at least", () => {
  assert.deepEqual(newestWithin(["a", "b", "c"], 2), ["b", "c"]);
  assert.deepEqual(newestWithin(["a"], 9), ["a"]);
  assert.deepEqual(newestWithin([], 9), []);
  const control = "\u0001".repeat(10_000);
  const many = newestWithin(
    Array.from({ length: 500 }, () => control),
    5000,
  );
  assert.ok(many.length > 30 && Buffer.byteLength(JSON.stringify(many)) < 2.1 * 1024 * 1024);
  const huge = "x".repeat(3 * 1024 * 1024);
  assert.deepEqual(newestWithin(["a", huge], 9), [huge]);
});

test("the first lines of a page are held to the same measure", () => {
  assert.deepEqual(firstWithin(["a", "b", "c"], 2), ["a", "b"]);
  const huge = "x".repeat(3 * 1024 * 1024);
  assert.deepEqual(firstWithin([huge, "a"], 9), [huge]);
  assert.deepEqual(firstWithin(["a", huge], 9), ["a"]);
});

test("a duration counts back from now, an instant may have any zone", () => {
  const now = new Date("2026-03-01T12:00:00.000Z");
  assert.deepEqual(
    ["90s", "15m", "2h", "7d", "2026-02-28T10:00+02:00"].map((text) => instantOf(text, now)),
    [
      "2026-03-01T11:58:30.000Z",
      "2026-03-01T11:45:00.000Z",
      "2026-03-01T10:00:00.000Z",
      "2026-02-22T12:00:00.000Z",
      "2026-02-28T08:00:00.000Z",
    ],
  );
});

test("a line is found by a text in upper or lower case, never by a pattern", () => {
  assert.ok(lineFilter({ grep: "error" })("An ERROR"));
  assert.ok(!lineFilter({ grep: "e.r" })("error"));
  assert.ok(lineFilter({})("anything"));
});

test("filters for a text, a level and a field are combined", () => {
  const line = `{"level":"error","status":500}`;
  for (const filters of [
    { field: ["status=500"] },
    { level: "warn", field: ["status=500", "level=error"], grep: "ERROR" },
  ] as const)
    assert.ok(lineFilter(filters)(line), JSON.stringify(filters));
  for (const filters of [
    { field: ["status=50"] },
    { field: ["status=500", "a=b"] },
    { field: ["status=500"], grep: "x" },
  ])
    assert.ok(!lineFilter(filters)(line), JSON.stringify(filters));
});

const partsOf = (since: string, until: string, most: number) => {
  const counts = createPartCounts({ from: new Date(since), until: new Date(until) }, most);
  return { ...counts, lengths: () => [counts.result().parts.length, counts.result().part_seconds] };
};

test("a range has at most as many parts as wanted, of a usual length, whatever the range", () => {
  for (const [until, most, lengths] of [
    ["2026-01-01T01:00:00.000Z", 60, [60, 60]],
    ["2026-01-01T01:00:00.001Z", 60, [31, 120]],
    ["2026-01-01T00:00:00.001Z", 240, [1, 1]],
    ["2026-01-02T00:00:00.000Z", 60, [48, 1800]],
    ["2026-01-08T00:00:00.000Z", 7, [7, 86_400]],
  ] as const)
    assert.deepEqual(partsOf("2026-01-01T00:00:00.000Z", until, most).lengths(), lengths);
  for (const most of [2, 240]) {
    const [parts = 0] = partsOf("0001-01-01T00:00:00.000Z", "9999-12-31T00:00:00.000Z", most).lengths();
    assert.ok(parts > 0 && parts <= most, `${parts} parts of ${most}`);
  }
});

test("lines are counted in the part of their time; what lies outside is left out", () => {
  const counts = partsOf("2026-01-01T00:00:30.000Z", "2026-01-01T00:03:00.000Z", 3);
  for (const [at, level] of [
    ["2026-01-01T00:00:59.999Z", "error"],
    ["2026-01-01T00:01:00.000Z", "warn"],
    ["2026-01-01T00:01:00.001Z", null],
    ["2026-01-01T00:03:00.000Z", "error"],
    ["2025-12-31T00:00:00.000Z", "error"],
  ] as const)
    counts.add(at, level);
  assert.deepEqual(counts.result(), {
    from: "2026-01-01T00:00:30.000Z",
    until: "2026-01-01T00:03:00.000Z",
    part_seconds: 60,
    ...{ lines: 3, errors: 1, warnings: 1 },
    parts: [
      { at: "2026-01-01T00:00:30.000Z", lines: 1, errors: 1, warnings: 0 },
      { at: "2026-01-01T00:01:00.000Z", lines: 2, errors: 0, warnings: 1 },
      { at: "2026-01-01T00:02:00.000Z", lines: 0, errors: 0, warnings: 0 },
    ],
  });
});

test("a cursor belongs to the log that gave it", () => {
  const ofBuild = ["bld_06a:0", "bld_06a:12"];
  const ofRuntime = ["0:0", "12:345"];
  const ofNone = ["", "x", "1:2x", "x1:2", "1:", "bld_06a:", "bld_06a:1x", "dep_06a:1"];
  for (const [source, own] of [
    ["build", ofBuild],
    ["runtime", ofRuntime],
  ] as const)
    assert.deepEqual(
      [...ofBuild, ...ofRuntime, ...ofNone].filter((text) => isCursorOf(source, text)),
      own,
    );
});
