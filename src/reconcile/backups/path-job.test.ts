import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import {
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { filesStages } from "../../../test/support/files-stage.ts";
import { openSnapshot, SnapshotClosed, storedBackup } from "../../features/backups/backups.ts";
import { ArchiveDamaged } from "../../ports/storage.ts";

const { api, stage, abandon } = await filesStages();
const { db } = api.platform;
const never = new AbortController().signal;
const mib = 1024 * 1024;

type Stage = Awaited<ReturnType<typeof stage>>;

/** Opens a backup anew. */
async function open({ owner, platform }: Stage, id: string, signal = never) {
  const backup = await storedBackup(db, owner.org_id, id);
  assert.ok(backup);
  return openSnapshot(platform.ports.storages, backup, signal);
}

const all = { path: "", offset: 0, count: 100 };

test("a backup is listed folder by folder, and a file of it is read, also linked and with holes", async () => {
  const staged = await stage();
  const { folder, backUp } = staged;
  mkdirSync(join(folder, "deep", "er"), { recursive: true });
  const content = randomBytes(3 * mib);
  writeFileSync(join(folder, "deep", "er", "photo"), content);
  linkSync(join(folder, "deep", "er", "photo"), join(folder, "linked"));
  symlinkSync("/etc/shadow", join(folder, "shadow"));
  writeFileSync(join(folder, "holes"), "begin");
  truncateSync(join(folder, "holes"), 5 * mib);
  const odd = `invoice","\u202egnp\n.exe`;
  writeFileSync(join(folder, odd), "odd");
  const id = await backUp();
  writeFileSync(join(folder, "later"), "not in it");
  for (const isIndexed of [true, false]) {
    if (!isIndexed) await db.updateTable("backup").set({ file_index: null }).where("id", "=", id).execute();
    const snapshot = await open(staged, id);
    const list = async (path: string, more = {}) =>
      (await snapshot.list({ ...all, path, ...more }))?.map(({ name, kind, size_bytes }) => [name, kind, size_bytes]);
    assert.deepEqual(await list(""), [
      ["deep", "folder", 0],
      ["holes", "file", 5 * mib],
      [odd, "file", 3],
      ["linked", "file", 3 * mib],
      ["shadow", "link", 0],
    ]);
    assert.deepEqual(await list("", { offset: 1, count: 2 }), [
      ["holes", "file", 5 * mib],
      [odd, "file", 3],
    ]);
    assert.deepEqual(await list("deep"), [["er", "folder", 0]]);
    assert.deepEqual(await list("deep/er"), [["photo", "file", 3 * mib]]);
    const read = (path: string, offset = 0, count = 10 * mib) => snapshot.read({ path, offset, count });
    for (const path of ["deep/er/photo", "linked"]) assert.ok(content.equals((await read(path)) as Buffer), path);
    assert.ok(content.subarray(mib, mib + 99).equals((await read("linked", mib, 99)) as Buffer));
    assert.equal((await read("deep/er/photo", 3 * mib))?.length, 0);
    const holes = (await read("holes", 2, 4 * mib)) as Buffer;
    assert.deepEqual([holes.subarray(0, 4).toString(), holes.length], ["gin\0", 4 * mib]);
    for (const path of ["shadow", "deep", "none", "../deep", "deep/../holes", "/holes", "later"])
      assert.equal(await read(path), undefined, path);
    for (const path of ["holes", "shadow", "..", "dee", "deep/", "later"])
      assert.equal(await snapshot.list({ ...all, path }), undefined, path);
  }
});

test("a folder of very many files is listed in parts, and one organization opens one backup at a time", async () => {
  const staged = await stage();
  const { folder, owner, backUp } = staged;
  mkdirSync(join(folder, "many"));
  for (let at = 0; at < 5000; at += 1) writeFileSync(join(folder, "many", `file-${String(at).padStart(6, "0")}`), "");
  const id = await backUp();
  const snapshot = await open(staged, id);
  const page = await snapshot.list({ path: "many", offset: 4990, count: 500 });
  assert.deepEqual(page?.map(({ name }) => name).at(0), "file-004990");
  assert.equal(page?.length, 10);
  const other = await stage();
  writeFileSync(join(other.folder, "a"), "a");
  const otherId = await other.backUp();
  const backup = await storedBackup(db, owner.org_id, id);
  assert.ok(backup);
  const { storages } = staged.platform.ports;
  const many = Promise.allSettled(Array.from({ length: 18 }, () => openSnapshot(storages, backup, never)));
  assert.equal((await (await open(other, otherId)).list(all))?.length, 1);
  const refused = (await many).flatMap((each) => (each.status === "rejected" ? [each.reason] : []));
  assert.deepEqual(
    refused.map((error) => error instanceof SnapshotClosed && error.isBusy),
    [true],
  );
});

test("a path is put into the live files; what it replaces is kept, and can be put back", async () => {
  const { folder, backUp, ask } = await stage();
  mkdirSync(join(folder, "uploads"));
  writeFileSync(join(folder, "uploads", "photo"), "first");
  linkSync(join(folder, "uploads", "photo"), join(folder, "a-first-name"));
  const id = await backUp();
  const text = (path: string) => readFileSync(join(folder, path), "utf8");
  writeFileSync(join(folder, "uploads", "photo"), "second");
  rmSync(join(folder, "a-first-name"));
  const refused = await ask(id, "restore", { path: "uploads" });
  assert.deepEqual([refused.problem_code, text("uploads/photo")], ["refused", "second"]);
  assert.match(String(refused.problem), /uploads is there, a folder changed at .* Nothing was changed/);
  const done = await ask(id, "restore", { path: "uploads", replaces: true });
  const kept = `${done.database_name}_replaced`;
  assert.deepEqual([done.problem_code, text("uploads/photo")], [null, "first"]);
  assert.deepEqual(readdirSync(join(folder, ".restored")), [kept]);
  assert.equal(text(`.restored/${kept}/uploads/photo`), "second");
  const back = await ask(null, "restore", { path: "uploads", folder: kept, replaces: true });
  assert.deepEqual([back.problem_code, text("uploads/photo")], [null, "second"]);
  assert.equal(text(`.restored/${back.database_name}_replaced/uploads/photo`), "first");
  rmSync(join(folder, "uploads"), { recursive: true });
  assert.equal((await ask(id, "restore", { path: "uploads/photo" })).problem_code, null);
  assert.equal(text("uploads/photo"), "first");
  const missing = await ask(id, "restore", { path: "uploads/none" });
  assert.match(String(missing.problem), /the backup has no uploads\/none/);
});

test("a damaged backup is named before anything is touched, and a link on the way is not followed", async () => {
  const staged = await stage();
  const { folder, files, backUp, ask, names } = staged;
  mkdirSync(join(folder, "uploads"));
  writeFileSync(join(folder, "uploads", "photo"), randomBytes(2 * mib));
  const id = await backUp();
  writeFileSync(join(folder, "uploads", "photo"), "live");
  rmSync(join(folder, "uploads"), { recursive: true });
  mkdirSync(join(folder, "elsewhere"));
  symlinkSync("elsewhere", join(folder, "uploads"));
  const led = await ask(id, "restore", { path: "uploads/photo", replaces: true });
  assert.match(String(led.problem), /leads over a link/);
  assert.deepEqual([readdirSync(join(folder, "elsewhere")), readdirSync(join(folder, ".restored"))], [[], []]);
  rmSync(join(folder, "uploads"));
  writeFileSync(join(folder, "uploads"), "live");
  for (const name of await names()) if (readFileSync(join(files, name)).length > 100_000) rmSync(join(files, name));
  const broken = await ask(id, "restore", { path: "uploads", replaces: true });
  assert.equal(broken.problem_code, "backup_damaged");
  assert.equal(readFileSync(join(folder, "uploads"), "utf8"), "live");
  assert.deepEqual(readdirSync(join(folder, ".restored")), []);
  const snapshot = await open(staged, id);
  assert.equal((await snapshot.list({ ...all, path: "uploads" }))?.length, 1);
  await assert.rejects(snapshot.read({ path: "uploads/photo", offset: 0, count: mib }), ArchiveDamaged);
});

test("an attempt that ends at any change is undone or finished by the next one, and the path has content throughout", async () => {
  const ends = [1, 2, 3, 4].flatMap((nth) => [`${nth} before`, `${nth} after`]);
  for (const end of [...ends, "3 between"]) {
    let changes = 0;
    const crash = async <T>(change: () => Promise<T>): Promise<T> => {
      changes += 1;
      const isLast = `${changes}` === end.split(" ")[0];
      if (isLast && end.endsWith("between")) {
        const kept = join(folder, ".restored", `${(await operation()).database_name}_replaced`);
        mkdirSync(kept);
        linkSync(join(folder, "a"), join(kept, "a"));
      }
      const changed = isLast && !end.endsWith("after") ? undefined : await change();
      assert.match(text("a"), /first|second/);
      if (isLast) throw new Error("killed");
      return changed as T;
    };
    const staged = await stage({ around: crash });
    const { owner, folder, backUp, work, outcome } = staged;
    const text = (path: string) => readFileSync(join(folder, path), "utf8");
    const operation = () =>
      db
        .selectFrom("backup_operation")
        .select(["id", "database_name"])
        .where(({ and }) => and({ project_id: owner.project_id, kind: "restore" }))
        .executeTakeFirstOrThrow();
    writeFileSync(join(folder, "a"), "first");
    const id = await backUp();
    writeFileSync(join(folder, "a"), "second");
    await staged.ask(id, "restore", { path: "a", replaces: true }).catch(() => {});
    const { id: asked, database_name } = await operation();
    if ((await outcome(asked, id)).status === "running") {
      await abandon(owner);
      await work();
    }
    assert.deepEqual([(await outcome(asked, id)).status, text("a")], ["completed", "first"], end);
    assert.deepEqual(readdirSync(join(folder, ".restored")), [`${database_name}_replaced`], end);
    assert.equal(text(`.restored/${database_name}_replaced/a`), "second", end);
  }
});
