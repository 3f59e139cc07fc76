// Drawn with other data files: only this file tests these rules, but it takes too long for every run. .ci/run draws more files.
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import { after, before, describe, it } from "node:test";
import { missingPart } from "../../src/adapters/postgres-host-local/test-fixture.ts";
import { StorageFull, type Storage } from "../../src/ports/storage.ts";
import { applyRetention, requestDueBackups, sweepLeftovers } from "../../src/reconcile/backups/backup-upkeep.ts";
import { startBackupPlatform, type BackupPlatform, type TestProject } from "../support/backups.ts";
import { eventually } from "../support/eventually.ts";
import { silentStorage } from "../support/port-doubles.ts";

/** Wraps a disk storage that a test can make full or slow. */
function adjustable() {
  const state = {
    free: null as number | null,
    fullAfter: Infinity,
    gate: Promise.resolve(),
    other: {} as Partial<Storage>,
  };
  const storage = (disk: Storage): Storage => ({
    ...disk,
    delete: (...given) => (state.other.delete ?? disk.delete)(...given),
    sweep: (...given) => (state.other.sweep ?? disk.sweep)(...given),
    free: async () => state.free ?? disk.free(),
    put: (key, content, signal) => disk.put(key, limited(content, state), signal),
  });
  return { state, storage };
}

function limited(content: Readable, state: { fullAfter: number; gate: Promise<void> }): Readable {
  const pieces = async function* () {
    let size = 0;
    for await (const piece of content) {
      size += (piece as Buffer).length;
      if (size > state.fullAfter) throw new StorageFull();
      await state.gate;
      yield piece as Buffer;
    }
  };
  return Readable.from(pieces(), { objectMode: false });
}

const never = new AbortController().signal;

describe("backup maintenance", { skip: missingPart }, () => {
  const { state, storage } = adjustable();
  let running: BackupPlatform;
  let project: TestProject;

  before(async () => {
    running = await startBackupPlatform({ storage });
    project = await running.project();
    await project.query("create table t as select i, md5(i::text) from generate_series(1, 20000) i");
  });
  after(() => running?.close());

  const rows = () =>
    running.platform.db
      .selectFrom("backup")
      .selectAll()
      .where("project_id", "=", project.id)
      .orderBy("id", "desc")
      .execute();

  it("refuses a backup with storage_full when the disk has no space, and stores a failed row with the reason", async () => {
    state.free = 1000;
    const refused = await running.call("POST", `/v1/projects/${project.slug}/backups`);
    state.free = null;
    assert.equal(refused.status, 507, refused.text);
    assert.equal(refused.body["code"], "storage_full");
    const [row] = await rows();
    assert.equal(row?.status, "failed");
    assert.match(row?.problem ?? "", /backup storage is full/);
  });

  it("fails with the same message when the disk fills up during a backup, and leaves no file", async () => {
    state.fullAfter = 100_000;
    const asked = await running.call("POST", `/v1/projects/${project.slug}/backups`);
    const id = (asked.body["id"] as string | undefined) ?? (await rows())[0]?.id ?? "";
    const ended = await running.ended(id);
    state.fullAfter = Infinity;
    assert.equal(ended.status, "failed");
    assert.equal(ended.failure?.code, "storage_full");
    assert.equal((await running.backup(project.slug)).status, "completed");
  });

  it("shows a backup's progress", async () => {
    let open = () => {};
    state.gate = new Promise((resolve) => (open = resolve));
    const asked = await running.call("POST", `/v1/projects/${project.slug}/backups`);
    assert.equal(asked.body["status"], "running");
    const seen = async () =>
      (await running.call("GET", `/v1/backups/${asked.body["id"] as string}`)).body["operation"] as {
        phase: string;
        bytes_done: number;
        tables_done: number;
        tables_total: number;
      };
    const { phase, tables_done } = await eventually(async () => {
      const now = await seen();
      return now.tables_total === 1 && now.bytes_done > 0 && now;
    }, "the backup has tables and bytes");
    assert.deepEqual({ phase, tables_done }, { phase: "dumping", tables_done: 1 });
    open();
    assert.equal((await running.ended(asked.body["id"] as string)).status, "completed");
  });

  it("makes one automatic backup a day, also when due backups are requested several times", async () => {
    const now = Date.now();
    const at = (days: number) =>
      ({
        ...running.platform,
        clock: { now: () => new Date(now + days * 86_400_000) },
        settings: { backups: { ...running.platform.settings.backups, window: { startHour: 0, hours: 24 } } },
      }) as typeof running.platform;
    const daily = async () => (await rows()).filter(({ origin }) => origin === "daily");
    await Promise.all([1, 2, 3].map(() => requestDueBackups(at(1))));
    assert.equal((await daily()).length, 1);
    await running.ended((await daily())[0]?.id ?? "");
    // The database's clock wrote the row's time, which is a day before the test's due time.
    await running.platform.db
      .updateTable("backup")
      .set({ created_at: new Date(now + 86_400_000) })
      .where("id", "=", (await daily())[0]?.id ?? "")
      .execute();
    await requestDueBackups(at(1));
    assert.equal((await daily()).length, 1);
    await requestDueBackups(at(2.1));
    assert.equal((await daily()).length, 2);
    await running.ended((await daily())[0]?.id ?? "");
  });

  it("deletes files and rows of backups beyond the retention, but never the newest verified backup", async () => {
    const verified = await running.backup(project.slug);
    await running.call("POST", `/v1/backups/${verified.id}/verify`);
    const older = [await running.backup(project.slug), await running.backup(project.slug)];
    const newest = await running.backup(project.slug);
    const files = await running.platform.db
      .selectFrom("backup")
      .select(["id", "storage_key"])
      .where("status", "=", "completed")
      .execute();
    const retention = { daily: 1, weekly: 0, manual: 1 };
    const { settings } = running.platform;
    const short = { ...running.platform, settings: { ...settings, backups: { ...settings.backups, retention } } };
    await stopsWhile("delete", (signal) => applyRetention(short, signal));
    assert.equal((await rows()).filter(({ expired_at }) => expired_at !== null).length > 0, true, "deleted later");
    await applyRetention(short, never);
    const left = (await rows())
      .filter(({ status, origin }) => status === "completed" && origin === "manual")
      .map(({ id }) => id);
    assert.deepEqual(left, [newest.id, verified.id]);
    for (const { id, storage_key } of files) {
      const isKept = left.includes(id) || !older.some((each) => each.id === id);
      if (!isKept) assert.ok(!existsSync(join(running.backupsDir, storage_key ?? "")), id);
    }
    assert.equal((await running.call("GET", `/v1/backups/${older[0]?.id}`)).status, 404);
  });

  it("deletes the oldest backups beyond the project's size limit once a newer one exists, and shows their total size", async () => {
    const share = async () => {
      const { body } = await running.call("GET", `/v1/projects/${project.slug}/disk`);
      return body["backups"] as { used_bytes: number; limit_bytes: number };
    };
    const completed = async () => (await rows()).filter(({ status }) => status === "completed");
    const before = await completed();
    const sizes = before.map(({ size_bytes }) => size_bytes ?? 0);
    assert.equal(
      (await share()).used_bytes,
      sizes.reduce((sum, bytes) => sum + bytes, 0),
    );
    const { id } = before.find(({ verification }) => verification === "verified") ?? {};
    // The limit fits two backups, with a margin because their sizes differ by a few bytes.
    const limit = { backups_limit_bytes: Math.floor(2.5 * Math.max(...sizes)) };
    await running.platform.db.updateTable("project").set(limit).where("id", "=", project.id).execute();
    const newest = [await running.backup(project.slug), await running.backup(project.slug)].at(-1);
    const left = await eventually(async () => {
      const ids = (await completed()).map((each) => each.id);
      return ids.length === 2 && ids;
    }, "the oldest backups are gone");
    assert.deepEqual(left, [newest?.id, id]);
    const shown = await share();
    assert.ok(shown.used_bytes <= shown.limit_bytes && shown.limit_bytes === limit.backups_limit_bytes);
  });

  /** Stops the work while the storage does not answer. */
  async function stopsWhile(method: "delete" | "sweep", work: (signal: AbortSignal) => Promise<void>): Promise<void> {
    const silent = silentStorage();
    const stop = new AbortController();
    state.other = { [method]: silent.call };
    const ended = work(stop.signal);
    await silent.called;
    stop.abort(new Error("the platform stops"));
    await ended;
    state.other = {};
  }

  it("removes scratch databases and unfinished files that belong to no running operation", async () => {
    const row = await project.row();
    await running.host.createDatabase({ ...row, password: "x", access: "open" as const }, "verify_0123456789");
    const unfinished = join(running.backupsDir, ".unfinished");
    await mkdir(unfinished, { recursive: true });
    await writeFile(join(unfinished, "org%2Fprj%2Fbak-1.dump.zst.0123456789ab"), "half");
    await stopsWhile("sweep", (signal) => sweepLeftovers(running.platform, signal));
    await sweepLeftovers(running.platform, never);
    assert.deepEqual(await running.host.listDatabases({ ...row, password: "x", access: "open" as const }), [
      row.database_name,
    ]);
    assert.ok(!existsSync(join(unfinished, "org%2Fprj%2Fbak-1.dump.zst.0123456789ab")));
  });
});
