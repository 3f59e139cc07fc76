import assert from "node:assert/strict";
import { test } from "node:test";
import { readable } from "./log.ts";

const entry = { level: 50, time: Date.parse("2026-01-02T03:04:05Z"), msg: "it failed" };

test("an entry is one line with its fields, and the stack of a fault stands under it", () => {
  assert.equal(readable({ ...entry, ...{ port: 4, name: "x" } }), "03:04:05 error it failed port=4 name=x");
  const err = { message: "no", stack: "Error: no\n    at a\n    at b" };
  assert.equal(
    readable({ ...entry, err }),
    "03:04:05 error it failed\n         Error: no\n             at a\n             at b",
  );
});

test("nothing in an entry can steer the terminal or forge a line", () => {
  const evil = "\u001b]0;owned\u0007 a\r\nb \u009b2J";
  const lines = readable({ ...entry, msg: evil, ...{ text: evil, more: [evil] }, err: { stack: `${evil}\nend` } });
  assert.doesNotMatch(lines, /[^\P{Cc}\n]/u);
  const [first, ...rest] = lines.split("\n");
  assert.match(first ?? "", /^03:04:05 error .*text=.*more=/);
  assert.ok(rest.every((line) => line.startsWith("         ")));
});

test("whatever was thrown is told", () => {
  for (const { err, told } of [
    { err: "plain words", told: "plain words" },
    { err: { message: "without a stack" }, told: "without a stack" },
    { err: { code: 3 }, told: '{"code":3}' },
    { err: null, told: "null" },
  ])
    assert.ok(readable({ ...entry, err }).endsWith(`\n         ${told}`), told);
});
