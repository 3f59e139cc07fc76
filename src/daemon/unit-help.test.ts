import assert from "node:assert/strict";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { run } from "../kit/exec.ts";

const main = fileURLToPath(new URL("main.ts", import.meta.url));

test("every command of berthd service has a help, and none of them acts then", async () => {
  for (const args of [["--help"], ["install", "--help"], ["uninstall", "-h"], ["status", "help"]]) {
    const { exitCode, stdout } = await run({ file: process.execPath, args: [main, "service", ...args] });
    assert.equal(exitCode, 0, args.join(" "));
    assert.match(stdout, /^Usage: berthd service install/);
  }
});
