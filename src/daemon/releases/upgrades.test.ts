import { chmod, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { eventually } from "../../../test/support/eventually.ts";
import { readTextOrEmpty } from "../../kit/whole-file.ts";
import { readConfig } from "../config.ts";
import { runUpgrade } from "./run-upgrade.ts";
import { appendStep, beginSteps } from "./steps.ts";
import { upgradeFiles } from "./upgrade-files.ts";
import { continueUpgrade } from "./upgrades.ts";

test("an upgrade that begins while the process of the one before still ends is carried out", async (t) => {
  const dataDir = await mkdtemp(join(tmpdir(), "berth-upgrades-"));
  t.after(() => rm(dataDir, { recursive: true }));
  const config = readConfig({ BERTH_DATA: dataDir, PATH: process.env["PATH"] });
  const { folder, runner, steps } = upgradeFiles(dataDir);
  await mkdir(folder, { recursive: true });
  const [program, calls] = [join(dataDir, "program"), join(dataDir, "calls")];
  await writeFile(program, `#!/bin/sh\necho "$1" >> '${calls}'\n`);
  await chmod(program, 0o755);
  await writeFile(runner, program);
  const request = { source: null, without_backup: true, from: "0.1.0", service: null };
  beginSteps(steps, request);
  appendStep(steps, { step: "failed", reason: "tried" });
  await continueUpgrade(config);
  beginSteps(steps, request);
  // The end of the process of the first.
  await runUpgrade(config);
  await continueUpgrade(config);
  await eventually(
    () => readTextOrEmpty(calls) === "upgrade\n",
    "the second one's program ran, and the first one's did not",
  );
});
