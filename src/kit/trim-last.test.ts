import assert from "node:assert/strict";
import { test } from "node:test";
import { trimLast } from "./trim-last.ts";

test("a character goes from the end alone", () => {
  for (const [text, trimmed] of [
    ["/a//", "/a"],
    ["a/b", "a/b"],
    ["///", ""],
    ["", ""],
  ] as const)
    assert.equal(trimLast(text, "/"), trimmed);
});
