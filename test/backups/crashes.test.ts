// Drawn with other data files: only this file tests these rules, but it takes too long for every run. .ci/run draws more files.
import assert from "node:assert/strict";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { after, afterEach, before, describe, it } from "node:test";
import { missingPart } from "../../src/adapters/postgres-host-local/test-fixture.ts";
import { backupsTask } from "../../src/reconcile/backups/backups-task.ts";
import { createDriver } from "../../src/reconcile/driver.ts";
import { startBackupPlatform, type BackupPlatform, type TestProject } from "../support/backups.ts";
import type { Step } from "../support/control-plane-steps.ts";
import { drawCases } from "../support/draw-cases.ts";
import { eventually } from "../support/eventually.ts";
import { killControlPlane } from "../support/kill-control-plane.ts";
import { warningsLog } from "../support/warnings-log.ts";

type Kind = "backup" | "restore" | "verify";

describe("a control plane that is killed", { skip: missingPart }, () => {
  let running: BackupPlatform;
  let project: TestProject;

  before(async () => {
    running = await startBackupPlatform({ paused: true });
    project = await running.project();
    await project.query("create table t as select i, md5(i::text) from generate_series(1, 50000) i");
  });
  after(() => running?.close());

  const cases: readonly (readonly [step: Step, kind: Kind])[] = [
    ["dumping", "backup"],
    ["writing", "backup"],
    ["stored", "backup"],
    ["creating", "verify"],
    ["restoring", "verify"],
    ["restored", "verify"],
    ["counting", "verify"],
    ["dropping", "verify"],
    ["creating", "restore"],
    ["restoring", "restore"],
    ["restored", "restore"],
  ];
  // A failed case must not leave its operation to the next case.
  afterEach(() => workedOff());

  for (const [step, kind] of drawCases(cases, 4)) {
    it(`while ${step} in a ${kind} leaves only work that the next control plane finishes`, async () => {
      const given = kind === "backup" ? undefined : await completed();
      const before = await stored();
      const asked = ask(kind, given);
      await killAt(step);
      await workedOff();
      const answer = await asked;
      assert.ok(answer.status < 300, answer.text);
      const { databases, files } = await stored();
      const restored = kind === "restore" ? [answer.body["database"] as string] : [];
      assert.deepEqual(databases, [...before.databases, ...restored].toSorted());
      assert.equal(files, before.files + (kind === "backup" ? 1 : 0));
      assert.deepEqual(await readdir(join(running.backupsDir, ".unfinished")), []);
      const { body } = await finish(
        running.call("POST", `/v1/backups/${given ?? (answer.body["id"] as string)}/verify`),
      );
      assert.equal(body["status"], "verified", JSON.stringify(body));
    });
  }

  function ask(kind: Kind, given: string | undefined) {
    if (kind === "backup") return running.call("POST", `/v1/projects/${project.slug}/backups`);
    if (kind === "verify") return running.call("POST", `/v1/backups/${given}/verify`);
    return running.call("POST", `/v1/projects/${project.slug}/restore`, { backup_id: given });
  }

  async function completed(): Promise<string> {
    const { body } = await finish(running.call("POST", `/v1/projects/${project.slug}/backups`));
    await running.ended(body["id"] as string);
    return body["id"] as string;
  }

  /** Waits until the requested operation exists, and finishes it with a control plane that is not killed. */
  async function finish<T>(asked: Promise<T>): Promise<T> {
    await requested();
    await workedOff();
    return asked;
  }

  async function requested(): Promise<void> {
    await eventually(isRunning, "the operation is requested");
  }

  async function isRunning(): Promise<boolean> {
    const rows = await running.platform.db
      .selectFrom("backup_operation")
      .select("id")
      .where("project_id", "=", project.id)
      .where("status", "=", "running")
      .execute();
    return rows.length > 0;
  }

  /** Finishes open operations in this process, with new tasks as after a start of the control plane. */
  async function workedOff(): Promise<void> {
    const { platform } = running;
    const task = backupsTask(platform, () => driver.wake("backups"));
    const driver = createDriver({ tasks: [task], wakeups: platform.wakeups, log: warningsLog });
    await driver.start();
    try {
      await eventually(async () => !(await isRunning()), "the operation is finished");
    } finally {
      await driver.stop();
    }
  }

  async function killAt(step: Step): Promise<void> {
    await requested();
    await killControlPlane(running, project, { step });
  }

  async function stored() {
    const row = await project.row();
    const databases = await running.host.listDatabases({ ...row, password: "", access: "open" as const });
    const files = await readdir(join(running.backupsDir, running.org.id, project.id)).catch(() => []);
    return { databases: databases.toSorted(), files: files.length };
  }
});
