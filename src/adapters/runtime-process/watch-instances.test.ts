import assert from "node:assert/strict";
import { mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { testFolder } from "../../../test/support/test-folder.ts";
import { startDetached } from "../../kit/exec.ts";
import { watchEnds } from "./watch-instances.ts";

const stateDir = testFolder("end-signal");

/** Runs a shim whose application ends at once. */
async function runShim(attempt: number): Promise<number> {
  const folder = join(stateDir, "live", "dep_1", "0", String(attempt));
  mkdirSync(folder, { recursive: true });
  const words = [join(import.meta.dirname, "shim.sh"), folder, "true"];
  return startDetached({ file: "/bin/sh", args: words }, join(folder, "output"));
}

test("a shim that ends rings, also when it ended while nobody listened", async () => {
  const rung: number[] = [];
  let heard = () => {};
  const hears = (pid: number) =>
    new Promise<void>((resolve) => {
      heard = () => rung.includes(pid) && resolve();
      heard();
    });
  const listen = () =>
    watchEnds(stateDir, (pid) => {
      rung.push(pid);
      heard();
    });
  const endSignal = listen();
  await hears(await runShim(1));
  endSignal.close();
  const missed = await runShim(2);
  const again = listen();
  await hears(missed);
  again.close();
  assert.deepEqual(readdirSync(join(stateDir, "ended")), []);
});
