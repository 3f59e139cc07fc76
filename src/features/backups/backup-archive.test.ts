import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { zstdCompressSync } from "node:zlib";
import { ArchiveDamaged, type Storage } from "../../ports/storage.ts";
import { checkArchive, unpackArchive } from "./backup-archive.ts";

const stored = zstdCompressSync("PGDMP and the rest");
const sha256 = createHash("sha256").update(stored).digest("hex");

/** A backup's file with this content, stored as the one above. */
function fileWith(content: Buffer) {
  const storage = { open: async () => Readable.from([content]) } as unknown as Storage;
  return { storage, key: "k", sha256, signal: new AbortController().signal, onBytes: () => {} };
}

test("an archive comes out as it was stored, and one that changed after its check fails before its end", async () => {
  assert.equal(await text(await unpackArchive(fileWith(stored))), "PGDMP and the rest");
  await checkArchive(fileWith(stored));
  const other = fileWith(zstdCompressSync("PGDMP and another"));
  await assert.rejects(unpackArchive(other).then(text), ArchiveDamaged);
  await assert.rejects(checkArchive(other), ArchiveDamaged);
});
