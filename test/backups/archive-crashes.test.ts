// Drawn with other data files: only this file tests these rules, but it takes too long for every run. .ci/run draws more files.
import assert from "node:assert/strict";
import { existsSync, readdirSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import pg from "pg";
import { missingPart } from "../../src/adapters/postgres-host-local/test-fixture.ts";
import { unfinishedCopies } from "../../src/features/backups/backups.ts";
import { databaseOf, specOf } from "../../src/features/database/database.ts";
import { archivesTask } from "../../src/reconcile/archives/archives-task.ts";
import { sweepLeftovers } from "../../src/reconcile/backups/backup-upkeep.ts";
import { backupsTask } from "../../src/reconcile/backups/backups-task.ts";
import { branchesTask } from "../../src/reconcile/branches/branches-task.ts";
import { createDriver } from "../../src/reconcile/driver.ts";
import type { Task } from "../../src/reconcile/platform.ts";
import { listProcesses } from "../e2e/processes.ts";
import { archiveSteps } from "../support/control-plane-steps.ts";
import { startBackupPlatform, type BackupPlatform, type TestProject } from "../support/backups.ts";
import { drawCases } from "../support/draw-cases.ts";
import { eventually } from "../support/eventually.ts";
import { killControlPlane } from "../support/kill-control-plane.ts";
import { ledgerTable, startLedger, wrongAt } from "../support/ledger.ts";
import { warningsLog } from "../support/warnings-log.ts";

interface Archive {
  readonly status: string;
  readonly windows: readonly { readonly from: string; readonly to: string }[];
  readonly gaps: readonly unknown[];
}

describe("a control plane that is killed", { skip: missingPart }, () => {
  let running: BackupPlatform;

  before(async () => {
    running = await startBackupPlatform({ paused: true });
  });
  after(() => running?.close());

  const archiveOf = async ({ slug }: TestProject) =>
    (await running.call("GET", `/v1/projects/${slug}/database/archive`)).body as unknown as Archive;

  /** Runs the tasks of another control plane meanwhile. */
  async function withNext<T>(work: () => Promise<T>): Promise<T> {
    const { platform } = running;
    const { settings } = platform;
    const often = { ...platform, settings: { ...settings, backups: { ...settings.backups, archiveEveryMs: 500 } } };
    const tasks: Task[] = [
      archivesTask(often),
      backupsTask(platform, () => driver.wake("backups")),
      branchesTask(platform, () => driver.wake("branches")),
    ];
    const driver = createDriver({ tasks, wakeups: platform.wakeups, log: warningsLog });
    await driver.start();
    try {
      return await work();
    } finally {
      await driver.stop();
    }
  }

  /** Waits until every moment up to now can be restored. */
  function stored(project: TestProject): Promise<Archive> {
    const nowMs = Date.now();
    return eventually(async () => {
      const archive = await archiveOf(project);
      return archive.status === "healthy" && Date.parse(archive.windows.at(-1)?.to ?? "") > nowMs && archive;
    }, "the archive is stored");
  }

  async function restored(project: TestProject, at: Date) {
    const { status, body, text } = await running.call("POST", `/v1/projects/${project.slug}/restore`, {
      at: at.toISOString(),
    });
    assert.equal(status, 201, text);
    return idsIn(project, body["database"] as string);
  }

  const idsIn = async (project: TestProject, database?: string) =>
    new Set((await project.query("select id from ledger", database)).map(({ id }) => id as number));

  for (const step of drawCases(archiveSteps, 3))
    it(`at the step "${step}" of an archive leaves what the next one goes on with: no gap, and nothing of its own`, async () => {
      const project = await running.project();
      await project.query(ledgerTable);
      const row = await project.row();
      const spec = specOf(running.platform.vault, row);
      // From here on the log is kept, and more than a segment of it is to be stored.
      await running.host.history(row.id)?.position(spec);
      await project.query("create table filler as select md5(i::text) from generate_series(1, 30000) i");
      const ledger = startLedger(() => project.login(), { writers: 2, pauseMs: 20 });
      await killControlPlane(running, project, { step });
      const { windows, gaps } = await withNext(async () => {
        await stored(project);
        await ledger.stop();
        const archive = await stored(project);
        const at = new Date(Date.now() - 1);
        assert.deepEqual(wrongAt(ledger, await restored(project, at), at.getTime()), { lacking: [], early: [] });
        // A half written segment is busy until the log has gone on.
        await project.query("insert into filler select md5(i::text) from generate_series(1, 30000) i");
        await stored(project);
        return archive;
      });
      await sweepLeftovers(running.platform, new AbortController().signal);
      assert.deepEqual([windows.length, gaps], [1, []]);
      assert.deepEqual(await unfinishedCopies(running.platform.db), []);
      const unfinished = join(running.backupsDir, ".unfinished");
      assert.deepEqual(existsSync(unfinished) ? readdirSync(unfinished) : [], []);
      const files = await readdir(join(running.backupsDir, "archive", running.org.id, project.id), { recursive: true });
      assert.equal(files.filter((name) => name.endsWith(".tar.zst")).length, 1, files.join());
    });

  const recoveries = [
    ["recovering", "restore"],
    ["recovered", "restore"],
    ["copying", "branch"],
    ["branched", "branch"],
  ] as const;
  for (const [step, kind] of drawCases(recoveries, 2))
    it(`while ${step} a moment for a ${kind} leaves work that the next one finishes`, async () => {
      const project = await running.project();
      await project.query(ledgerTable);
      const ledger = startLedger(() => project.login(), { writers: 2, pauseMs: 20 });
      const at = await withNext(async () => {
        await stored(project);
        const at = new Date();
        await eventually(
          async () => Date.parse((await archiveOf(project)).windows.at(-1)?.to ?? "") > at.getTime(),
          "",
        );
        return at;
      });
      await ledger.stop();
      const path = `/v1/projects/${project.slug}`;
      const asked =
        kind === "restore"
          ? restored(project, at)
          : running.call("POST", `${path}/database/branches`, { name: "past", at: at.toISOString() });
      asked.catch(() => {});
      const table = kind === "restore" ? "backup_operation" : "database_branch";
      const isAsked = () =>
        running.platform.db.selectFrom(table).select("id").where("project_id", "=", project.id).executeTakeFirst();
      await eventually(isAsked, "it is requested");
      await killControlPlane(running, project, {
        step,
        withinMs: step === "recovering" || step === "copying" ? 800 : 0,
      });
      await withNext(async () => {
        const shown = kind === "restore" ? ((await asked) as ReadonlySet<number>) : await ofBranch(project);
        assert.deepEqual(wrongAt(ledger, shown, at.getTime()), { lacking: [], early: [] });
        if (kind === "branch") await running.call("DELETE", `${path}/database/branches/past`);
        await eventually(
          () => !readdirSync(running.hostOptions.dir).some((name) => name.startsWith("dbb_")),
          "no branch is left",
        );
      });
      const folder = join(running.hostOptions.dir, (await project.row()).id);
      assert.equal(existsSync(join(folder, "recovered")), false);
      const servers = listProcesses().filter(({ commandLine }) => commandLine.includes(running.hostOptions.dir));
      assert.deepEqual(
        servers.filter(({ commandLine }) => /\/recovered|\/dbb_/.test(commandLine)),
        [],
        "no server is left",
      );
    });

  async function ofBranch(project: TestProject): Promise<ReadonlySet<number>> {
    const { db, vault } = running.platform;
    const row = await eventually(() => databaseOf(db, running.org.id, project.id, "past"), "the branch is ready");
    const { database_name, role_name, password } = specOf(vault, row);
    const address = { host: row.host ?? "", port: row.port ?? 0 };
    const client = new pg.Client({ ...address, user: role_name, password, database: database_name });
    await client.connect();
    try {
      return new Set((await client.query<{ id: number }>("select id from ledger")).rows.map(({ id }) => id));
    } finally {
      await client.end();
    }
  }
});
