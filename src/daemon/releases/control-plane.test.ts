import assert from "node:assert/strict";
import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test, type TestContext } from "node:test";
import { processesNaming } from "../../../test/e2e/processes.ts";
import { eventually } from "../../../test/support/eventually.ts";
import { readTextOrEmpty } from "../../kit/whole-file.ts";
import { readConfig } from "../config.ts";
import { holdDataFolder } from "../data-folder.ts";
import { restartControlPlane } from "./control-plane.ts";

/** Starts a control plane that ends, at `end`, as one does that finds the data folder held. */
async function startOneThatEnds(t: TestContext) {
  const folder = await mkdtemp(join(tmpdir(), "berth-control-plane-"));
  t.after(() => rm(folder, { recursive: true }));
  const config = readConfig({ BERTH_DATA: join(folder, "data"), PATH: process.env["PATH"] });
  const [starter, ended] = [join(folder, "berthd"), join(folder, "end")];
  await writeFile(starter, `#!/bin/sh\nuntil [ -e '${ended}' ]; do sleep 0.1; done\necho "$1: broken"; exit 1\n`);
  await chmod(starter, 0o755);
  const hasEnded = await restartControlPlane(config, null, starter);
  const log = () => readTextOrEmpty(join(config.dataDir, "logs/berthd.log"));
  return { config, hasEnded, log, end: () => writeFile(ended, "") };
}

test("a start that ends is repeated three times; then an upgrade need not wait to go back", async (t) => {
  const { hasEnded, log, end } = await startOneThatEnds(t);
  assert.equal(await hasEnded(), false);
  await end();
  await eventually(hasEnded, "it is known to have ended");
  assert.equal(log(), "start: broken\n".repeat(4));
});

// As when the upgrade is killed right after it has started the new version, and starts it again before the first one holds the folder.
test("of two control planes that start at once, one ends, and the other counts as started until it ends too", async (t) => {
  const { config, hasEnded, end } = await startOneThatEnds(t);
  const other = holdDataFolder(config.dataDir);
  await end();
  await eventually(() => processesNaming(dirname(config.dataDir)).length === 0, "one has ended");
  assert.equal(await hasEnded(), false);
  other.release();
  await eventually(hasEnded, "it is known to have ended");
});
