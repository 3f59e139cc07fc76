import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { start } from "../../src/kit/exec.ts";
import { eventually } from "./eventually.ts";
import { lendSetting } from "./lend-setting.ts";

test("a test's change of a machine setting is reverted when the test ends and when its process is killed", async (t) => {
  const dir = mkdtempSync(join(tmpdir(), "berth-setting-"));
  t.after(() => rmSync(dir, { recursive: true }));
  const file = join(dir, "setting");
  writeFileSync(file, "15\n");
  const giveBack = await lendSetting(file, "5");
  assert.equal(readFileSync(file, "utf8"), "5");
  await giveBack();
  assert.equal(readFileSync(file, "utf8"), "15\n");
  const lent = `import { lendSetting } from ${JSON.stringify(join(import.meta.dirname, "lend-setting.ts"))};
    await lendSetting(${JSON.stringify(file)}, "5"); console.log("lent"); setInterval(() => {}, 1000);`;
  const child = start({ file: process.execPath, args: ["--input-type=module", "-e", lent] });
  await once(child.stdout, "data");
  assert.equal(readFileSync(file, "utf8"), "5");
  child.kill("SIGKILL");
  await eventually(() => readFileSync(file, "utf8") === "15\n", "the setting has its old value");
});
