import assert from "node:assert/strict";
import { test } from "node:test";
import { isAtLeast, levelOf } from "./log-level.ts";

test("a line's level is read from JSON, pairs and plain words, and never guessed from a sentence", () => {
  for (const [text, level] of [
    [`{"level":"error","msg":"x"}`, "error"],
    [`{"severity":"WARNING","message":"x"}`, "warn"],
    [`{"lvl":"dbug"}`, null],
    [`{"level":30,"time":1,"msg":"ERROR in the text"}`, "info"],
    [`{"level":60}`, "error"],
    [`{"level":20}`, "debug"],
    [`{"severity":3}`, "error"],
    [String.raw`{"msg":"\"level\":\"error\""}`, null],
    [`time=now level=warn msg="x"`, "warn"],
    ["2026-01-02 03:04:05,678 ERROR shop.orders: x", "error"],
    ["[info] listening", "info"],
    ["Warning: x is deprecated", "warn"],
    ["WARNING:root:x", "warn"],
    ["\u001b[31mERROR\u001b[0m x", "error"],
    ["TypeError: x is not a function", "error"],
    ["Traceback (most recent call last):", "error"],
    ["panic: runtime error: index out of range", "error"],
    ["GET /error 200", null],
    ["no error so far, no info either", null],
    ["see error-page.html", null],
  ] as const)
    assert.equal(levelOf(text), level, text);
});

test("a wanted level includes the worse ones, and no line without a level", () => {
  assert.deepEqual(
    (["error", "warn", "info", null] as const).map((level) => isAtLeast(level, "warn")),
    [true, true, false, false],
  );
});
