import assert from "node:assert/strict";
import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { eventually } from "../../../test/support/eventually.ts";
import { readTextOrEmpty } from "../../kit/whole-file.ts";
import { readConfig } from "../config.ts";
import { restartControlPlane } from "./control-plane.ts";

test("whoever starts a control plane learns that it has ended, so that an upgrade need not wait to go back", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "berth-control-plane-"));
  t.after(() => rm(folder, { recursive: true }));
  const config = readConfig({ BERTH_DATA: join(folder, "data"), PATH: process.env["PATH"] });
  const [starter, ended] = [join(folder, "berthd"), join(folder, "end")];
  await writeFile(starter, `#!/bin/sh\nuntil [ -e '${ended}' ]; do sleep 0.1; done\necho "$1: broken"; exit 1\n`);
  await chmod(starter, 0o755);
  const hasEnded = await restartControlPlane(config, null, starter);
  assert.equal(await hasEnded(), false);
  await writeFile(ended, "");
  await eventually(hasEnded, "it is known to have ended");
  assert.equal(readTextOrEmpty(join(folder, "data/logs/berthd.log")), "start: broken\n");
});
