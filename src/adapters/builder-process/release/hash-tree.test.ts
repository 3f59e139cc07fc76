import assert from "node:assert/strict";
import { test } from "node:test";
import { testFolder } from "../../../../test/support/test-folder.ts";
import { startHashing } from "./hash-tree.ts";

test("a cancelled build's hashing ends, although its thread answers no more", { timeout: 10_000 }, async () => {
  const root = testFolder("hash-tree");
  const cancelling = new AbortController();
  const hashing = startHashing(cancelling.signal);
  hashing.expectMuch();
  const hashed = hashing.hash({ root, known: new Map(), limits: { entries: 1000, bytes: 1e9 } });
  cancelling.abort(new Error("cancelled"));
  await assert.rejects(hashed, /cancelled|ended/);
});
