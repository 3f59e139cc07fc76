import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { folderSizes } from "./folder-sizes.ts";

test("each folder's size is found by its name, a missing folder uses none", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "berth-sizes-"));
  t.after(() => rmSync(folder, { recursive: true }));
  writeFileSync(join(folder, "file"), Buffer.alloc(100_000, 1));
  const sizes = await folderSizes({ full: folder, missing: join(folder, "none") }, new AbortController().signal);
  assert.ok((sizes?.["full"] ?? 0) >= 100_000, JSON.stringify(sizes));
  assert.equal(sizes?.["missing"], 0);
});

test("of no folders nothing is measured, the current folder neither", async () => {
  // An aborted measurement gives null.
  assert.deepEqual(await folderSizes({}, AbortSignal.abort()), {});
});
