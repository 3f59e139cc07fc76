import assert from "node:assert/strict";
import { test } from "node:test";
import { duration, oneLine, relativeTime, terminalText } from "./text.ts";

const now = Date.parse("2026-01-02T00:00:00.000Z");
const before = (seconds: number) => new Date(now - seconds * 1000).toISOString();

test("times are told by their distance, in the largest whole unit", () => {
  assert.equal(relativeTime(before(1), now), "now");
  assert.equal(relativeTime(before(59), now), "59 s ago");
  assert.equal(relativeTime(before(3 * 86_400 + 5), now), "3 d ago");
  assert.equal(relativeTime(before(-7200), now), "in 2 h");
  assert.equal(relativeTime(null, now), "never");
  assert.equal(duration(before(90), null, now), "1 min");
});

test("one line keeps the words and loses line breaks, control sequences and what is too long", () => {
  assert.equal(oneLine("First\nsecond"), "First");
  assert.equal(oneLine("\x1b[31mred\x1b[0m\ttab"), "red tab");
  assert.equal(oneLine("abcdef", 4), "abc…");
});

test("an application's colours reach the terminal, everything else that steers it does not", () => {
  const text = "\x1b[31mred\x1b[0m\x1b[2J\x1b]0;title\x07 end\r\b\t\u202ex\u2066\n";
  assert.equal(terminalText(text, { colours: true }), "\x1b[31mred\x1b[0m end\tx\n");
  assert.equal(terminalText(text, { colours: false }), "red end\tx\n");
  assert.equal(oneLine("a\u202eb\u200f"), "ab");
});
