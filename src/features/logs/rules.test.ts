import assert from "node:assert/strict";
import { test } from "node:test";
import { instantOf } from "../../kit/instant.ts";
import { firstWithin, lineFilter, newestWithin } from "./rules.ts";

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
  assert.ok(lineFilter("error")("An ERROR"));
  assert.ok(!lineFilter("e.r")("error"));
  assert.ok(lineFilter(undefined)("anything"));
});
