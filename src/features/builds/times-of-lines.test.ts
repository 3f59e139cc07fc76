import assert from "node:assert/strict";
import { test } from "node:test";
import { timesOfLines } from "./times-of-lines.ts";

const times = [
  { offset: 0, at: "2026-01-31T09:00:00.000Z" },
  { offset: 4, at: "2026-01-31T09:00:02.000Z" },
  { offset: 12, at: "2026-01-31T09:00:05.000Z" },
];

test("a log's lines have the time of the append that wrote them", () => {
  assert.deepEqual(timesOfLines("ä1\nb\nc2345\nd\n", 0, times), [
    { line: 0, at: "2026-01-31T09:00:00.000Z" },
    { line: 1, at: "2026-01-31T09:00:02.000Z" },
    { line: 3, at: "2026-01-31T09:00:05.000Z" },
  ]);
});

test("a part of a log begins with the newest time before it", () => {
  assert.deepEqual(timesOfLines("c2345\nd\n", 6, times), [
    { line: 0, at: "2026-01-31T09:00:02.000Z" },
    { line: 1, at: "2026-01-31T09:00:05.000Z" },
  ]);
  assert.deepEqual(timesOfLines("d\n", 12, times), [{ line: 0, at: "2026-01-31T09:00:05.000Z" }]);
});

test("a log without times, and the end of one, have none", () => {
  assert.deepEqual(timesOfLines("a\n", 0, []), []);
  assert.deepEqual(timesOfLines("", 14, times), []);
});
