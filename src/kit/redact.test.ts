import assert from "node:assert/strict";
import { test } from "node:test";
import { redactor } from "./redact.ts";

const secret = 'open "sesame" \\ & 100%';

for (const [spelling, text] of [
  ["bare", secret],
  ["as JSON", JSON.stringify(secret).slice(1, -1)],
  ["as a parameter of a form", new URLSearchParams({ a: secret }).toString().slice(2)],
  ["as a part of a URL", encodeURIComponent(secret)],
  ["as Base64", Buffer.from(secret).toString("base64")],
] as const) {
  test(`a secret is hidden ${spelling}`, () => assert.equal(redactor([secret])(`x ${text} y`), "x [redacted] y"));
}

test("each line of a secret is one", () => {
  assert.equal(redactor(["first line\nsecond line"])("a second line b"), "a [redacted] b");
});

test("the longer of two secrets is hidden whole", () => {
  assert.equal(redactor(["secret", "secret-longer"])("a secret-longer b secret"), "a [redacted] b [redacted]");
});

test("short values stay readable", () => assert.equal(redactor(["true", "1"])("1 is true"), "1 is true"));

test("a value that is no well-formed text does no harm", () => {
  assert.equal(redactor(["broken \ud800 value"])("a broken \ud800 value"), "a [redacted]");
});
