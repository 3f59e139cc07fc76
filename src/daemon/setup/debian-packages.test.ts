import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { hasPackageLists } from "./debian-packages.ts";

test("package lists are missing on a machine where apt-get never fetched them", () => {
  const folder = mkdtempSync(join(tmpdir(), "berth-lists-"));
  mkdirSync(join(folder, "partial"));
  writeFileSync(join(folder, "lock"), "");
  assert.equal(hasPackageLists(folder), false);
  assert.equal(hasPackageLists(join(folder, "none")), false);
  writeFileSync(join(folder, "mirror_debian_dists_bookworm_main_binary-amd64_Packages.lz4"), "");
  assert.equal(hasPackageLists(folder), true);
  rmSync(folder, { recursive: true });
});
