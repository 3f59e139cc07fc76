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

test("as many secrets as a project can have are all hidden, and the longer of two still first", () => {
  const line = (number: number) => `line-${number.toString(36)}-${"é".repeat(number % 3)}`;
  const lines = Array.from({ length: 8000 }, (_, number) => line(number));
  const longest = "%".repeat(32 * 1024);
  const redact = redactor([lines.join("\n"), longest, "inner-secret", `${lines[0]} inner-secret`]);
  for (const each of [lines[0], lines[1], lines[7999], longest, `${lines[0]} inner-secret`])
    assert.equal(redact(`a ${each} b`), "a [redacted] b");
});
