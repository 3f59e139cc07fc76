import { silentStorage, storagesDouble } from "../../../test/support/port-doubles.ts";
import assert from "node:assert/strict";
import { mkdtemp, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { after, beforeEach, test } from "node:test";
import { platformBeside, testSettings } from "../../../test/support/platform-double.ts";
import { testApi, testOrganization } from "../../../test/support/test-platform.ts";
import { createDiskStorage } from "../../adapters/storage-disk/disk-storage.ts";
import { platformBackups, requestPlatformBackup, type ListedBackup } from "../../features/platform/platform.ts";
import type { PlatformArchive } from "../../ports/platform-archive.ts";
import type { Storage } from "../../ports/storage.ts";
import { platformBackupsTask } from "./platform-backups-task.ts";

const api = await testApi();
after(() => api.close());
const { db, wakeups } = api.platform;
const dir = await mkdtemp(join(tmpdir(), "berth-platform-backups-"));
after(() => rm(dir, { recursive: true, force: true }));
beforeEach(async () => {
  await db.deleteFrom("platform_backup").execute();
  await rm(join(dir, "platform"), { recursive: true, force: true });
});
const never = new AbortController().signal;
const pack: PlatformArchive["pack"] = async () => ({
  content: Readable.from([Buffer.from("encrypted")]),
  taken_at: new Date("2026-01-02T03:04:05.678Z"),
  recipient: "age1test",
  left_out: [],
});

const nightly = { backups: { ...testSettings.backups, window: { startHour: 1, hours: 4 } } };

type More = { pack?: typeof pack; storage?: Partial<Storage>; now?: string };

function taskOn(more: More, wake = () => {}) {
  const disk = { ...createDiskStorage({ dir }), ...more.storage };
  const platform = platformBeside(api, {
    ports: { platformArchive: { pack: more.pack ?? pack }, storages: storagesDouble({ disk }) },
    ...(more.now === undefined ? {} : { clock: { now: () => new Date(more.now as string) }, settings: nightly }),
  });
  return platformBackupsTask(platform, wake);
}

/** Runs the task until nothing is under way. */
async function work(more: More = {}) {
  const task = taskOn(more);
  await task.run(never);
  await task.settle?.();
  return platformBackups(db);
}
const request = () => requestPlatformBackup(db, wakeups, "manual");
const files = async () => (await readdir(join(dir, "platform")).catch(() => [] as string[])).toSorted();
const list = async () => JSON.parse(await readFile(join(dir, "platform/backups.json"), "utf8")) as ListedBackup[];

test("a requested backup is stored, read back and listed; meanwhile no other one begins", async () => {
  const id = await request();
  assert.equal(await request(), undefined);
  const [made] = await work();
  assert.deepEqual([made?.status, made?.size_bytes, made?.taken_at], ["completed", 9, "2026-01-02T03:04:05.678Z"]);
  assert.deepEqual(await files(), ["backups.json", `${id}-1.tar.age`]);
  assert.deepEqual(
    (await list()).map(({ storage_key, sha256 }) => [storage_key, sha256]),
    [[`platform/${id}-1.tar.age`, made?.sha256]],
  );
});

test("one that is requested while the list is compared is made at once afterwards", async () => {
  let woken = 0;
  const reading = Promise.withResolvers<void>();
  const disk = createDiskStorage({ dir });
  const open: Storage["open"] = async (...given) => (await reading.promise, disk.open(...given));
  const task = taskOn({ storage: { open } }, () => (woken += 1));
  await task.run(never);
  await request();
  await task.run(never);
  reading.resolve();
  await task.settle?.();
  assert.equal(woken, 1);
  await task.run(never);
  await task.settle?.();
  assert.deepEqual([(await platformBackups(db))[0]?.status, woken], ["completed", 1]);
});

test("one that a crash interrupted is made again, three times at most, and leaves no file", async () => {
  const id = (await request()) as string;
  await work();
  const interrupted = { status: "running", attempts: 1 } as const;
  await db.updateTable("platform_backup").set(interrupted).execute();
  assert.equal((await work())[0]?.status, "completed");
  assert.deepEqual(await files(), ["backups.json", `${id}-2.tar.age`]);
  await db
    .updateTable("platform_backup")
    .set({ ...interrupted, attempts: 3 })
    .execute();
  const [given] = await work();
  assert.deepEqual([given?.status, given?.problem?.includes("three times")], ["failed", true]);
  assert.deepEqual(await files(), ["backups.json"]);
});

test("a stop does not wait for a storage that answers nothing, and the next start goes on", async () => {
  await request();
  await work();
  await db.updateTable("platform_backup").set({ status: "running", attempts: 1 }).execute();
  const silent = silentStorage();
  const stop = new AbortController();
  const task = taskOn({ storage: { delete: silent.call } });
  await task.run(stop.signal);
  await silent.called;
  stop.abort(new Error("the platform stops"));
  await task.settle?.();
  assert.deepEqual(
    (await platformBackups(db)).map(({ status }) => status),
    ["running"],
  );
  assert.equal((await work())[0]?.status, "completed");
});

test("a failure names its reason and leaves no file: packing, its stream, a storage that returns other bytes", async () => {
  const broken = async () => ({
    ...(await pack([], never)),
    content: Readable.from(
      (async function* () {
        yield Buffer.from("half");
        throw new Error("the disk broke");
      })(),
    ),
  });
  const cases = [
    [{ pack: async () => Promise.reject(new Error("no database")) }, /no database/],
    [{ pack: broken }, /the disk broke/],
    [{ storage: { open: async () => Readable.from([Buffer.from("other")]) } }, /other bytes/],
  ] as const;
  for (const [more, reason] of cases) {
    await request();
    const [failed] = await work({ ...more, storage: { ...("storage" in more ? more.storage : {}) } });
    assert.equal(failed?.status, "failed");
    assert.match(failed?.problem ?? "", reason);
    assert.deepEqual(
      (await files()).filter((name) => name.endsWith(".age")),
      [],
    );
  }
});

test("a storage that does nothing now ends no backup silently: it fails with the reason", async () => {
  const down = () => Promise.reject(new Error("no answer"));
  const id = await request();
  const [failed] = await work({ storage: { put: down, delete: down } });
  assert.deepEqual([failed?.id, failed?.status, failed?.problem], [id, "failed", "no answer"]);
});

test("a list that could not be written is written soon, not with the next backup", async () => {
  const disk = createDiskStorage({ dir });
  let isDown = true;
  const put: Storage["put"] = async (key, content, signal) => {
    if (isDown && key === "platform/backups.json") throw new Error("no answer");
    return disk.put(key, content, signal);
  };
  const task = taskOn({ storage: { put } });
  const run = async () => {
    await task.run(never);
    await task.settle?.();
  };
  await run();
  const id = await request();
  await run();
  isDown = false;
  await run();
  assert.deepEqual(
    (await list()).map((each) => each.id),
    [id],
  );
});

test("the daily one is due once, when the window of the projects' own has passed", async () => {
  const [early, late] = ["2099-01-02T04:30:00Z", "2099-01-02T06:00:00Z"];
  assert.equal((await work({ now: late })).length, 0, "there is no platform yet");
  await testOrganization(db, "first");
  assert.equal((await work({ now: late })).length, 1);
  await db.updateTable("platform_backup").set({ created_at: late }).execute();
  assert.equal((await work({ now: "2099-01-02T09:00:00Z" })).length, 1);
  assert.equal((await work({ now: early.replace("01-02", "01-03") })).length, 1);
  assert.equal((await work({ now: late.replace("01-02", "01-03") })).length, 2);
});

test("more than are kept expire with their files, and the list names what is left", async () => {
  await writeFile(join(dir, "other"), "stays");
  for (let made = 0; made < 22; made += 1) {
    await request();
    await work();
  }
  const kept = await platformBackups(db);
  assert.equal(kept.length, 20);
  assert.deepEqual(
    (await list()).map(({ id }) => id),
    kept.map(({ id }) => id),
  );
  assert.equal((await files()).length, 21);
});
