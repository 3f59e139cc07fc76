// Drawn with other data files: every run restores from an archive that is whole.
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
import { StorageMissing } from "../../src/ports/storage.ts";
import { archivesTask } from "../../src/reconcile/archives/archives-task.ts";
import { branchesTask } from "../../src/reconcile/branches/branches-task.ts";
import { startBackupPlatform, type BackupPlatform, type TestProject } from "../support/backups.ts";
import { eventually } from "../support/eventually.ts";
import { platformBeside } from "../support/platform-double.ts";
import { testFolder } from "../support/test-folder.ts";

interface Archive {
  readonly status: string;
  readonly windows: readonly { readonly from: string; readonly to: string }[];
  readonly gaps: readonly { readonly from: string; readonly to: string; readonly reason: string }[];
}

const flipped = (whole: Buffer) => whole.with(-20, (whole.at(-20) ?? 0) ^ 1);

describe("a damaged archive of a database", { skip: missingPart }, () => {
  const repositories = testFolder("no-repositories");
  let running: BackupPlatform;
  let project: TestProject;
  let isElsewhere = false;
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

  const now = async () => {
    const [at] = await project.query(
      "select (pg_current_wal_insert_lsn() - '0/0')::text as position, clock_timestamp() as at",
    );
    return { position: Number(at?.["position"]), at: at?.["at"] as Date };
  };

  /** Commits log that contains no row, waits until it is stored, and returns where it begins. */
  async function fill(): Promise<number> {
    const { position } = await now();
    await project.query(
      "select pg_logical_emit_message(true, 'test', repeat('x', 1024 * 1024)) from generate_series(1, 4)",
    );
    const last = await now();
    await eventually(async () => {
      await running.platform.wakeups.send(running.platform.db, "archives");
      return (await chain()).stored_position >= last.position;
    }, "the log is stored");
    return position;
  }

  /** Commits a row, and log behind it. */
  async function add(): Promise<void> {
    await project.query("insert into notes values (1)");
    await fill();
  }

  before(async () => {
    running = await startBackupPlatform({
      storage: (disk) => ({
        ...disk,
        open: (key) => (isElsewhere ? Promise.reject(new StorageMissing(key)) : disk.open(key)),
      }),
    });
    await running.startTask(() => archivesTask(running.platform));
    await running.startTask((wake) => branchesTask(running.platform, wake));
    project = await running.project();
    await project.query("create table notes (id int)");
    await eventually(async () => {
      await running.platform.wakeups.send(running.platform.db, "archives");
      return (await openChains(running.platform.db)).length === 1 && (await copies()).length === 1;
    }, "the first copy is made");
    await add();
    const first = await now();
    const position = await eventually(async () => {
      // Marks are at most 10 s apart: the next one is of a look after this.
      await running.platform.db.deleteFrom("archive_mark").execute();
      const begin = await fill();
      const [mark] = await running.platform.db.selectFrom("archive_mark").select("at").execute();
      return Date.parse(mark?.at ?? "") > first.at.getTime() + 1000 && begin;
    }, "a moment after the first row is known");
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

  it("gives a lost platform its database from an older copy when the newest one is damaged, and lacks nothing", async () => {
    await writeFile(copyFile, flipped(copy));
    const { part, rows } = await restored();
    assert.deepEqual([rows, part?.problem], [4, null]);
  });

  it("gives it up to the first segment that is damaged or missing, which is named", async () => {
    const whole = await readFile(lostFile);
    for (const damage of [() => writeFile(lostFile, whole.subarray(0, -10)), () => rm(lostFile)]) {
      await damage();
      const { part, rows } = await restored();
      assert.equal(rows, 1);
      assert.match(part?.problem ?? "", new RegExp(`log segment ${between} .* is missing or damaged`));
      assert.ok(part?.taken_at);
    }
    await writeFile(lostFile, whole);
  });

  it("gives it from a newer copy that does not need what is lost, and lacks nothing", async () => {
    const whole = await readFile(lostFile);
    await writeFile(copyFile, copy);
    await rm(lostFile);
    const { part, rows } = await restored();
    await writeFile(lostFile, whole);
    assert.deepEqual([rows, part?.problem], [4, null]);
  });

  const of = (rest: string) => `/v1/projects/${project.slug}${rest}`;
  const archive = async () => (await running.call("GET", of("/database/archive"))).body as unknown as Archive;
  const restore = (at: string) => running.call("POST", of("/restore"), { at });

  /** Restores the database to a moment beside the live one, and returns how many rows it has. */
  async function rowsAt(at: string): Promise<number> {
    const { status, body, text } = await restore(at);
    assert.equal(status, 201, `${at}: ${text}`);
    const name = body["database"] as string;
    const rows = await project.query("select from notes", name);
    await running.call("DELETE", of(`/database/restored/${name}`));
    return rows.length;
  }

  /** Flips a byte of the newest copy, and returns the moment from which that would be used. */
  async function damageNewest(): Promise<string> {
    const newest = (await copies()).at(-1);
    const file = join(running.backupsDir, newest?.storage_key ?? "");
    await writeFile(file, flipped(await readFile(file)));
    return newest?.restorable_from ?? "";
  }

  const copiedAgain = (damaged: string) =>
    eventually(async () => ((await copies()).at(-1)?.restorable_from ?? "") > damaged, "another copy is made");

  it("shows a moment from an older copy when the newest before it is damaged, says so, and gets another at once", async () => {
    const known = (await archive()).windows;
    const damaged = await damageNewest();
    assert.equal(await rowsAt((await archive()).windows.at(-1)?.to ?? ""), 4);
    const { body } = await running.call("GET", "/v1/activity");
    const [entry] = (body["activity"] as { action: string; detail: Record<string, unknown> }[]).filter(
      ({ action }) => action === "restore.completed",
    );
    assert.deepEqual(entry?.detail["damaged_copies"], [damaged]);
    await copiedAgain(damaged);
    const { windows, gaps } = await archive();
    assert.deepEqual([windows.length, windows[0]?.from, gaps], [1, known[0]?.from, []], "nothing is lost");
  });

  it("shows a moment in a branch from an older copy when the newest before it is damaged", async () => {
    await add();
    const damaged = await damageNewest();
    const { status, body, text } = await running.call("POST", of("/database/branches"), {
      ...{ name: "past", at: (await archive()).windows.at(-1)?.to },
    });
    assert.equal(status, 201, text);
    assert.equal(body["status"], "ready");
    await copiedAgain(damaged);
    await running.call("DELETE", of("/database/branches/past"));
  });

  it("takes a storage without anything of the archive for another one, and not for a loss", async () => {
    const known = (await archive()).windows;
    isElsewhere = true;
    const { status, text } = await restore(known[0]?.to ?? "");
    isElsewhere = false;
    assert.equal(status, 503, text);
    assert.match(text, /has nothing of the database's archive/);
    await rowsAt(known[0]?.to ?? "");
    assert.deepEqual((await archive()).windows[0]?.from, known[0]?.from);
  });

  it("shows log that is lost before a later copy as a gap, and every other moment", async () => {
    const known = (await copies()).length;
    const made = (await copies()).at(-1)?.restorable_from ?? "";
    const hole = (await copies())[0]?.restorable_from;
    await rm(lostFile);
    const before = await restore(new Date(Date.parse(made) - 1).toISOString());
    assert.deepEqual([before.status, before.body["code"]], [409, "wal_missing"]);
    const { windows, gaps, status } = await archive();
    assert.deepEqual([windows.length, gaps.length, status], [2, 1, "healthy"]);
    assert.deepEqual([windows[0]?.from, windows[1]?.from], [hole, made]);
    assert.match(gaps[0]?.reason ?? "", new RegExp(`log segment ${between} was found missing or damaged`));
    assert.ok(before.text.includes(`${windows[0]?.to} and ${windows[1]?.from}`), before.text);
    const rows = [windows[0]?.to, windows[1]?.from, windows[1]?.to].map((at) => () => rowsAt(at ?? ""));
    for (const [index, count] of [1, 5, 5].entries()) assert.equal(await rows[index]?.(), count);
    for (const at of [Date.parse(gaps[0]?.from ?? "") + 1, Date.parse(made) - 1])
      assert.equal((await restore(new Date(at).toISOString())).body["code"], "target_outside_window");
    assert.equal((await copies()).length, known, "no other copy is needed");
  });
});
