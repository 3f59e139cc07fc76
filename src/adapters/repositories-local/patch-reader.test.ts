import assert from "node:assert/strict";
import { test } from "node:test";
import { createPatchReader } from "./patch-reader.ts";

const head = (name: string) => `diff --git a/${name} b/${name}\n--- a/${name}\n+++ b/${name}\n@@ -0,0 +1 @@\n`;

test("a line that is too long is cut, in its own file alone, in whatever pieces git prints it", () => {
  const patch = Buffer.from(`${head("long")}+${"x".repeat(5000)}\n${head("short")}+y\n`);
  for (const size of [patch.length, 1000, 7]) {
    const reader = createPatchReader({ files: 10, fileBytes: 10_000, bytes: 100_000 });
    for (let at = 0; at < patch.length; at += size) reader.add(patch.subarray(at, at + size));
    const [long, short] = reader.end(true);
    assert.deepEqual(long, { lines: `@@ -0,0 +1 @@\n+${"x".repeat(1999)}\n`, cut: true });
    assert.deepEqual(short, { lines: "@@ -0,0 +1 @@\n+y\n", cut: false });
  }
});
