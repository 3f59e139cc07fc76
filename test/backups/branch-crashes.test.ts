// Drawn with other data files: only this file tests these rules, but it takes too long for every run. .ci/run draws more files.
import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { after, before, describe, it } from "node:test";
import { missingPart } from "../../src/adapters/postgres-host-local/test-fixture.ts";
import { databaseOf, specOf } from "../../src/features/database/database.ts";
import { branchesTask } from "../../src/reconcile/branches/branches-task.ts";
import { createDriver } from "../../src/reconcile/driver.ts";
import { startBackupPlatform, type BackupPlatform, type TestProject } from "../support/backups.ts";
import type { Step } from "../support/control-plane-steps.ts";
import { drawCases } from "../support/draw-cases.ts";
import { eventually } from "../support/eventually.ts";
import { killControlPlane } from "../support/kill-control-plane.ts";
import { warningsLog } from "../support/warnings-log.ts";

describe("a control plane that is killed while it makes a branch", { skip: missingPart }, () => {
  let running: BackupPlatform;
  let project: TestProject;

  before(async () => {
    running = await startBackupPlatform({ paused: true });
    project = await running.project();
    await project.query("create table t as select i, md5(i::text) from generate_series(1, 50000) i");
  });
  after(() => running?.close());

  const of = (rest = "") => `/v1/projects/${project.slug}/database/branches${rest}`;
  const instances = () => readdirSync(running.hostOptions.dir).filter((name) => name.startsWith("dbb_"));

  for (const step of drawCases(["announcing", "copying", "branched", "started"] as const, 2))
    for (const what of ["finished", "removed"] as const)
      it(`at the step "${step}" leaves what the next one has ${what}`, async () => {
        const asked = running.call("POST", of(), { name: "tried" });
        await killAt(step);
        const { status } = (await running.call("GET", of("/tried"))).body;
        assert.equal(status, "copying", "nothing half made is ready");
        if (what === "removed") assert.equal((await running.call("DELETE", of("/tried"))).status, 204);
        await withNext(async () => {
          if (what === "finished") await isWhole();
          assert.equal((await asked).status, what === "finished" ? 201 : 409);
          await running.call("DELETE", of("/tried"));
          await eventually(async () => instances().length === 0, "its instance is gone");
        });
      });

  async function isWhole(): Promise<void> {
    const { db, vault } = running.platform;
    const row = await eventually(() => databaseOf(db, running.org.id, project.id, "tried"), "the branch is ready");
    const { counts } = await running.host.dump(specOf(vault, row), {
      signal: new AbortController().signal,
      isCompressed: false,
      consume: async (content) => void (await content.toArray()),
    });
    assert.deepEqual(counts, [{ table: "public.t", rows: 50_000 }]);
    assert.deepEqual(instances(), [row.id]);
  }

  async function withNext(work: () => Promise<void>): Promise<void> {
    const { platform } = running;
    const task = branchesTask(platform, () => driver.wake("branches"));
    const driver = createDriver({ tasks: [task], wakeups: platform.wakeups, log: warningsLog });
    await driver.start();
    try {
      await work();
    } finally {
      await driver.stop();
    }
  }

  async function killAt(step: Step): Promise<void> {
    await eventually(async () => (await running.call("GET", of("/tried"))).status === 200, "the branch is requested");
    await killControlPlane(running, project, { step, withinMs: step === "copying" ? 200 : 0 });
  }
});
