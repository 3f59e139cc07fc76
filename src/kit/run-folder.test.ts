import assert from "node:assert/strict";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { removeRunFolder, runFolder } from "./run-folder.ts";

test("a stop leaves no folder of sockets behind, and the next start finds the same name", (t) => {
  const top = mkdtempSync(join(tmpdir(), "bt-"));
  t.after(() => rmSync(top, { recursive: true, force: true }));
  const made = runFolder(join(top, "data"), top);
  writeFileSync(join(made, "socket"), "");
  removeRunFolder(join(top, "data"));
  removeRunFolder(join(top, "never started"));
  assert.equal(existsSync(made), false);
  assert.equal(runFolder(join(top, "data"), top), made);
});
