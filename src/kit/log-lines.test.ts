import assert from "node:assert/strict";
import { test } from "node:test";
import { createLineSplitter, cutLine, withoutControls } from "./log-lines.ts";

function split(chunks: Iterable<Buffer>): string[] {
  const lines: string[] = [];
  const splitter = createLineSplitter((line) => void lines.push(line));
  for (const chunk of chunks) splitter.push(chunk);
  splitter.end();
  return lines;
}

const bytesOf = (text: string) => Array.from(Buffer.from(text), (byte) => Buffer.from([byte]));

test("lines are the same however the output was cut into pieces", () => {
  const text = "grün\r\n\n10 %\r100 %\r\r\nlast…\r";
  const expected = ["grün", "", "100 %", "last…"];
  assert.deepEqual(split([Buffer.from(text)]), expected);
  assert.deepEqual(split(bytesOf(text)), expected);
});

test("output without a line feed is kept in bounded memory, whatever its length", () => {
  const chunk = Buffer.alloc(64 * 1024, "x");
  // More than the longest possible string: keeping it all would throw.
  const [line = "", ...more] = split(Array.from({ length: 10_000 }, () => chunk));
  assert.deepEqual([line.length, more], [128 * 1024, []]);
});

test("of a progress bar longer than any line its end is kept", () => {
  const bar = Array.from({ length: 100_000 }, (_, i) => Buffer.from(`\r${i} of 100000`));
  assert.deepEqual(split([...bar, Buffer.from("\n")]), ["99999 of 100000"]);
  assert.deepEqual(split([Buffer.alloc(300_000, "x"), Buffer.from("\rdone")]), ["done"]);
});

test("a line of ten thousand bytes stays whole", () => {
  const line = "é".repeat(5000);
  assert.equal(cutLine(line), line);
});

test("a longer line is cut at ten thousand bytes, not characters, and marked; never inside a character", () => {
  for (const character of ["x", "é", "…", "😀"]) {
    const cut = cutLine(character.repeat(10_001));
    assert.ok(cut.endsWith(`${character} … [cut]`), character);
    assert.ok(Buffer.byteLength(cut) <= 10_000 && Buffer.byteLength(cut) > 10_000 - 4, character);
    assert.equal(cutLine(cut), cut);
  }
});

test("nothing that a terminal would obey is left, and everything that it would show", () => {
  const shown = {
    "\x1b[1;31mred\x1b[0m \x1b[38:2::1:2:3mtrue\x1b[m": "red true",
    "\x1b]0;title\x07a\x1b]8;;https://x.test\x1b\\link\x1b]8;;\x1b\\": "alink",
    "\x1b(Bplain\x1b7\x1b[?25l\x1b[2K\x9b3Aup": "plainup",
    "bell\x07 null\x00 delete\x7f tab\tnext\x85": "bell null delete tab\tnext",
    "\x1b]unended \x1b[ half\x1b": "]unended alf",
    "[1m is no escape": "[1m is no escape",
  };
  for (const [text, expected] of Object.entries(shown)) assert.equal(withoutControls(text), expected);
});
