import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { filesStages } from "../../../test/support/files-stage.ts";
import { createDiskStorage } from "../../adapters/storage-disk/disk-storage.ts";
import { runOk } from "../../kit/exec.ts";
import { StorageFull, type Storage } from "../../ports/storage.ts";

const { api, dir, stage, abandon } = await filesStages();
const { db } = api.platform;
const mib = 1024 * 1024;

test("a second backup stores only what changed, and each restores its own state, byte for byte", async () => {
  const { folder, backUp, ask, names, row } = await stage();
  for (let at = 0; at < 8; at += 1) await writeFile(join(folder, `photo-${at}`), randomBytes(mib));
  const first = await backUp();
  const before = await names();
  assert.ok(before.length >= 4, String(before.length));
  await writeFile(join(folder, "photo-9"), "one more");
  const second = await backUp();
  const added = (await names()).length - before.length;
  assert.ok(added >= 1 && added <= 3, String(added));
  assert.deepEqual([(await row(second))?.status, (await row(second))?.content], ["completed", "files"]);
  assert.equal((await ask(second, "verify")).verification, "verified");
  const { database_name } = await ask(first, "restore");
  const back = join(folder, ".restored", database_name ?? "");
  assert.equal((await readdir(back)).includes("photo-9"), false);
  await writeFile(join(back, "photo-9"), "one more");
  await runOk({ file: "diff", args: ["-r", "--exclude=.restored", folder, back] });
});

test("pieces go once no backup contains them, and what a later one uses again stays", async () => {
  const { owner, folder, backUp, ask, names } = await stage();
  await writeFile(join(folder, "a"), randomBytes(3 * mib));
  const first = await backUp();
  const content = await readFile(join(folder, "a"));
  await rm(join(folder, "a"));
  await writeFile(join(folder, "b"), randomBytes(3 * mib));
  const second = await backUp();
  const both = (await names()).length;
  await db.updateTable("backup").set({ expired_at: new Date() }).where("id", "=", first).execute();
  const third = await backUp();
  assert.ok((await names()).length <= both - 2, "the pieces of the first are gone");
  await writeFile(join(folder, "a"), content);
  const fourth = await backUp();
  for (const id of [second, third, fourth]) assert.equal((await ask(id, "verify")).verification, "verified", id);
  const left = await db
    .selectFrom("storage_piece")
    .select("storage_key")
    .where("project_id", "=", owner.project_id)
    .execute();
  assert.equal(left.length, (await names()).length, "every file has its row");
});

test("a damaged or missing piece fails the verification and a restore, which leaves nothing", async () => {
  const { folder, files, backUp, ask, names } = await stage();
  await writeFile(join(folder, "a"), randomBytes(2 * mib));
  const id = await backUp();
  const sizes = await Promise.all((await names()).map(async (each) => ({ each, ...(await stat(join(files, each))) })));
  // The largest one is no part of the index.
  const name = sizes.toSorted((a, b) => b.size - a.size)[0]?.each ?? "";
  await writeFile(join(files, name), "other");
  assert.equal((await ask(id, "verify")).verification, "failed");
  assert.deepEqual((await ask(id, "restore")).problem_code, "backup_damaged");
  assert.deepEqual(await readdir(join(folder, ".restored")), []);
  await rm(join(files, name));
  assert.equal((await ask(id, "verify")).verification, "failed");
});

test("an attempt that ends at any piece is continued by the next one, and leaves no file without a row", async () => {
  for (const dies of [1, 2, 4]) {
    let puts = 0;
    const real: { put?: Storage["put"] } = {};
    const put: Storage["put"] = async (key, content, signal) => {
      puts += 1;
      if (puts === dies) await (real.put as Storage["put"])(key, content, signal);
      if (puts === dies) throw new Error("killed after the file was written");
      return (real.put as Storage["put"])(key, content, signal);
    };
    const { owner, folder, backUp, work, ask, row, names } = await stage({ storage: { put } });
    real.put = createDiskStorage({ dir: join(dir, `${owner.project_id}-stored`) }).put;
    await writeFile(join(folder, "a"), randomBytes(6 * mib));
    await assert.rejects(backUp(), /killed/);
    await abandon(owner);
    await work();
    const { id = "" } =
      (await db.selectFrom("backup").select("id").where("project_id", "=", owner.project_id).executeTakeFirst()) ?? {};
    assert.equal((await row(id))?.status, "completed");
    assert.equal((await ask(id, "verify")).verification, "verified");
    const rows = await db
      .selectFrom("storage_piece")
      .select("storage_key")
      .where("project_id", "=", owner.project_id)
      .execute();
    assert.deepEqual(
      (await names()).toSorted(),
      rows.map(({ storage_key }) => storage_key.split("/").at(-1) ?? "").toSorted(),
    );
  }
});

test("over the project's limit the oldest backup ends, and a full storage fails the new one alone", async () => {
  const { folder, backUp, row } = await stage({ backups_limit_bytes: 5 * mib });
  const ids: string[] = [];
  for (let at = 0; at < 3; at += 1) {
    await writeFile(join(folder, "a"), randomBytes(3 * mib));
    ids.push(await backUp());
  }
  assert.deepEqual(await Promise.all(ids.map(async (id) => (await row(id))?.status)), [
    undefined,
    undefined,
    "completed",
  ]);
  const full = await stage({ storage: { put: () => Promise.reject(new StorageFull()) } });
  await writeFile(join(full.folder, "a"), "x");
  const failed = await full.row(await full.backUp());
  assert.deepEqual([failed?.status, failed?.problem_code], ["failed", "storage_full"]);
});
