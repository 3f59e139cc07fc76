// Drawn with other data files: every run restores a platform from an archive that is whole.
import assert from "node:assert/strict";
import { readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { createLocalPostgresHost } from "../../src/adapters/postgres-host-local/local-postgres-host.ts";
import { makeTestPlace, missingPart } from "../../src/adapters/postgres-host-local/test-fixture.ts";
import { restoreProjects, type RestoredPart } from "../../src/daemon/recovery/restore-projects.ts";
import { archiveFolder, copiesOf, openChains } from "../../src/features/backups/backups.ts";
import { specOf } from "../../src/features/database/database.ts";
import { segmentName } from "../../src/ports/postgres-host.ts";
import { archivesTask } from "../../src/reconcile/archives/archives-task.ts";
import { startBackupPlatform, type BackupPlatform, type TestProject } from "../support/backups.ts";
import { eventually } from "../support/eventually.ts";
import { platformBeside } from "../support/platform-double.ts";
import { testFolder } from "../support/test-folder.ts";

describe("the database of a lost platform, whose archive is damaged", { skip: missingPart }, () => {
  const repositories = testFolder("no-repositories");
  let running: BackupPlatform;
  let project: TestProject;
  /** The first segment that contains neither of the first two rows, but what lies between them. */
  let [between, lostFile, copyFile] = ["", "", ""];
  let copy = Buffer.alloc(0);

  const chain = async () => {
    const [open] = await openChains(running.platform.db);
    assert.ok(open);
    return open;
  };
  const copies = async () =>
    (await copiesOf(running.platform.db, [await chain()])).filter(({ status }) => status === "completed");

  /** Commits a row and log behind it, waits until both are stored, and returns where the log of the row ends. */
  async function add(): Promise<number> {
    const end = async () => {
      const [at] = await project.query("select (pg_current_wal_insert_lsn() - '0/0')::text as position");
      return Number(at?.["position"]);
    };
    await project.query("insert into notes values (1)");
    const position = await end();
    await project.query(
      "select pg_logical_emit_message(true, 'test', repeat('x', 1024 * 1024)) from generate_series(1, 4)",
    );
    const last = await end();
    await eventually(async () => {
      await running.platform.wakeups.send(running.platform.db, "archives");
      return (await chain()).stored_position >= last;
    }, "the row is stored");
    return position;
  }

  before(async () => {
    running = await startBackupPlatform();
    await running.startTask(() => archivesTask(running.platform));
    project = await running.project();
    await project.query("create table notes (id int)");
    await eventually(async () => (await openChains(running.platform.db)).length === 1, "the archive has begun");
    await eventually(async () => (await copies()).length === 1, "the first copy is made");
    const position = await add();
    const open = await chain();
    between = segmentName(open, position + open.segment_bytes);
    lostFile = join(running.backupsDir, archiveFolder(open), `${between}.zst`);
    await add();
    await running.platform.db
      .updateTable("archive_copy")
      .set({ log_bytes: 100 * 1024 ** 2 })
      .execute();
    await add();
    await eventually(async () => (await copies()).length === 2, "another copy is made");
    await add();
    copyFile = join(running.backupsDir, (await copies()).at(-1)?.storage_key ?? "");
    copy = await readFile(copyFile);
  });
  after(() => running?.close());

  /** Restores it on another machine, and returns what is said about it, and how many rows it has. */
  async function restored(): Promise<{ part: RestoredPart | undefined; rows: number | undefined }> {
    const place = makeTestPlace();
    const host = createLocalPostgresHost(place.options);
    const { storages } = running.platform.ports;
    const parts: RestoredPart[] = [];
    const spec = specOf(running.platform.vault, await project.row());
    try {
      const other = platformBeside(running.api, { ports: { postgresHost: host, storages } });
      await restoreProjects(other, repositories, (part) => parts.push(part));
      await host.ensure(spec);
      const signal = new AbortController().signal;
      const [notes] = await host.countRows(spec, spec.database_name, { signal });
      return { part: parts.find(({ part }) => part === "database"), rows: notes?.rows };
    } finally {
      await host.destroy(spec.id);
      place.remove();
    }
  }

  it("is restored from an older copy when the newest one is damaged, and lacks nothing", async () => {
    await writeFile(copyFile, copy.with(-20, (copy.at(-20) ?? 0) ^ 1));
    const { part, rows } = await restored();
    assert.deepEqual([rows, part?.problem], [4, null]);
  });

  it("is restored up to the first segment that is damaged or missing, which is named", async () => {
    const whole = await readFile(lostFile);
    for (const damage of [() => writeFile(lostFile, whole.subarray(0, -10)), () => rm(lostFile)]) {
      await damage();
      const { part, rows } = await restored();
      assert.equal(rows, 1);
      assert.match(part?.problem ?? "", new RegExp(`log segment ${between} .* is missing or damaged`));
      assert.ok(part?.taken_at);
    }
  });

  it("is restored from a newer copy that does not need what is lost, and lacks nothing", async () => {
    await writeFile(copyFile, copy);
    const { part, rows } = await restored();
    assert.deepEqual([rows, part?.problem], [4, null]);
  });
});
