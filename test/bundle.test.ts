import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { testFolder } from "./support/test-folder.ts";
import { run } from "../src/kit/exec.ts";

test("the dashboard's bundle is complete and built without a warning", async () => {
  const folder = testFolder("bundle");
  const args = [join(import.meta.dirname, "../src/bundler/main.ts"), "build", folder];
  const { exitCode, stdout, stderr } = await run({ file: process.execPath, args });
  assert.deepEqual({ exitCode, said: stdout + stderr }, { exitCode: 0, said: "" });
  assert.ok(existsSync(join(folder, "index.html")));
});
