import assert from "node:assert/strict";
import {
  closeSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { after, test } from "node:test";
import { readFolder } from "./folder-tar.ts";
import { sparseParts, TarIndex, type TarEntry } from "./tar-index.ts";

const dir = mkdtempSync(join(tmpdir(), "berth-index-"));
after(() => rmSync(dir, { recursive: true, force: true }));
const long = `${"x".repeat(200)}\nä`;
mkdirSync(join(dir, "sub"));
writeFileSync(join(dir, "sub", long), "long");
writeFileSync(join(dir, "a"), "hello");
linkSync(join(dir, "a"), join(dir, "b"));
symlinkSync("/etc/shadow", join(dir, "link"));
const holes = openSync(join(dir, "sparse"), "w");
for (let at = 0; at < 60; at += 1) writeSync(holes, `${at}`.repeat(2000), at * 100_000);
closeSync(holes);
const archive = await buffer(readFolder(dir, new AbortController().signal) as Readable);

function entries(step: number): TarEntry[] {
  const index = new TarIndex();
  const found: TarEntry[] = [];
  for (let at = 0; at < archive.length; at += step) found.push(...index.push(archive.subarray(at, at + step)));
  return found;
}

test("the entries of an archive and their places are found, however its bytes are cut", () => {
  const found = entries(archive.length);
  assert.deepEqual(
    found.map(({ path, kind, size_bytes }) => [path, kind, size_bytes]),
    [
      ["", "folder", 0],
      ["a", "file", 5],
      ["b", "hard_link", 0],
      ["link", "link", 0],
      ["sparse", "sparse", 59 * 100_000 + 4000],
      ["sub", "folder", 0],
      [`sub/${long}`, "file", 4],
    ],
  );
  for (const step of [1, 511, 4096]) assert.deepEqual(entries(step), found);
  const content = ({ data, size_bytes }: TarEntry) => archive.subarray(data, data + size_bytes).toString();
  assert.deepEqual([content(found[1] as TarEntry), content(found[6] as TarEntry)], ["hello", "long"]);
  assert.equal(found[2]?.target, "a");
  for (const [at, { start }] of found.entries()) assert.equal(start, found[at - 1]?.end ?? 0);
});

test("the parts of a sparse file make the file", () => {
  const { start, data, size_bytes } = entries(archive.length)[4] as TarEntry;
  const content = Buffer.alloc(size_bytes);
  let stored = data;
  for (const { offset, bytes } of sparseParts(archive.subarray(start, data))) {
    archive.copy(content, offset, stored, stored + bytes);
    stored += bytes;
  }
  assert.ok(content.equals(readFileSync(join(dir, "sparse"))));
});

test("what is no archive is refused", () => {
  assert.throws(() => new TarIndex().push(Buffer.alloc(1024, 7)), /checksum/);
});
