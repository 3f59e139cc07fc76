import assert from "node:assert/strict";
import { chmodSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { findProgram, findSystemProgram } from "./find-program.ts";

test("what a user installed below a home is found first, but not given to sandboxes, which cannot see it", () => {
  const folder = mkdtempSync(join(tmpdir(), "berth-programs-"));
  try {
    writeFileSync(join(folder, "env"), "#!/bin/sh\n");
    chmodSync(join(folder, "env"), 0o755);
    symlinkSync("/usr/bin/id", join(folder, "id"));
    assert.equal(findProgram("env", folder), join(folder, "env"));
    assert.match(findSystemProgram("env", folder) ?? "", /^\/usr\//);
    assert.match(findSystemProgram("id", folder) ?? "", /^\/usr\//);
    assert.equal(findSystemProgram("no-such-program", folder), null);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
