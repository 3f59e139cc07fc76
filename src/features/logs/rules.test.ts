import assert from "node:assert/strict";
import { test } from "node:test";
import { firstWithin, newestWithin } from "./rules.ts";

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
