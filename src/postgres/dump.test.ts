import assert from "node:assert/strict";
import { buffer } from "node:stream/consumers";
import { test } from "node:test";
import { zstdDecompressSync } from "node:zlib";
import { compressArchive } from "./dump.ts";

async function* pieces(count: number, end?: Error): AsyncGenerator<Buffer> {
  for (let at = 0; at < count; at += 1) yield Buffer.from(`piece ${at};`.repeat(1000));
  if (end !== undefined) throw end;
}

test("compresses all of an archive", async () => {
  const expected = await buffer(pieces(500));
  assert.ok(zstdDecompressSync(await buffer(compressArchive(pieces(500)))).equals(expected));
});

test("an archive that breaks has no end for its reader", async () => {
  const why = new Error("pg_dump failed");
  await assert.rejects(buffer(compressArchive(pieces(500, why))), why);
});
