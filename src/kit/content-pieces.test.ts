import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { contentPieces } from "./content-pieces.ts";

const mib = 1024 * 1024;

/** Returns the same random-looking bytes in every run. */
function content(bytes: number, seed: string): Buffer {
  return createHash("shake256", { outputLength: bytes }).update(seed).digest();
}

async function piecesOf(whole: Buffer, chunkBytes = 64 * 1024): Promise<Buffer[]> {
  async function* chunks() {
    for (let at = 0; at < whole.length; at += chunkBytes) yield whole.subarray(at, at + chunkBytes);
  }
  return Array.fromAsync(contentPieces(chunks()));
}

const digests = (pieces: readonly Buffer[]) => pieces.map((each) => createHash("sha256").update(each).digest("hex"));

test("pieces together are the stream, within their sizes, however the stream is read", async () => {
  const whole = content(20 * mib + 5, "a");
  const pieces = await piecesOf(whole);
  assert.ok(Buffer.concat(pieces).equals(whole));
  assert.ok(pieces.length >= 8 && pieces.length <= 30, String(pieces.length));
  for (const { length } of pieces.slice(0, -1)) assert.ok(length >= mib / 4 && length <= 4 * mib, String(length));
  for (const chunkBytes of [1000, 3 * mib])
    assert.deepEqual(digests(await piecesOf(whole, chunkBytes)), digests(pieces));
});

test("a change makes new pieces only around it, also when it moves the rest", async () => {
  const whole = content(20 * mib, "b");
  const known = new Set(digests(await piecesOf(whole)));
  for (const changed of [
    Buffer.concat([whole.subarray(0, 7 * mib), Buffer.from("inserted"), whole.subarray(7 * mib)]),
    Buffer.concat([whole.subarray(0, 9 * mib), whole.subarray(9 * mib + 3)]),
  ]) {
    const others = digests(await piecesOf(changed)).filter((each) => !known.has(each));
    assert.ok(others.length >= 1 && others.length <= 3, String(others.length));
  }
});

test("content that repeats one byte, and none, end too", async () => {
  assert.deepEqual(await piecesOf(Buffer.alloc(0)), []);
  const pieces = await piecesOf(Buffer.alloc(9 * mib));
  assert.equal(Buffer.concat(pieces).length, 9 * mib);
  assert.ok(new Set(digests(pieces)).size <= 2);
});
