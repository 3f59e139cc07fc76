import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { testProject } from "../../../test/support/fixtures.ts";
import { nothingInProgress } from "../../../test/support/nothing-in-progress.ts";
import { platformBeside } from "../../../test/support/platform-double.ts";
import { runtimeDouble, storagesDouble } from "../../../test/support/port-doubles.ts";
import { sharedApi, testOrganization } from "../../../test/support/test-platform.ts";
import { createDiskStorage } from "../../adapters/storage-disk/disk-storage.ts";
import { requestBackup, requestOperation, takeOperation } from "../../features/backups/backups.ts";
import { runOk } from "../../kit/exec.ts";
import { readFolder, writeFolder } from "../../kit/folder-tar.ts";
import { StorageFull, type Storage } from "../../ports/storage.ts";
import { applyRetention } from "./backup-upkeep.ts";
import { performBackupWork } from "./backup-work.ts";

const api = await sharedApi();
const { db, wakeups } = api.platform;
const dir = await mkdtemp(join(tmpdir(), "berth-files-"));
after(() => rm(dir, { recursive: true, force: true }));
const never = new AbortController().signal;
const mib = 1024 * 1024;

/** A project with a storage folder, whose backups go to a disk storage of its own. */
async function stage(more: Partial<Storage> = {}, backups_limit_bytes: number | null = null) {
  const org = await testOrganization(db, `files-${randomBytes(4).toString("hex")}`);
  const project = await testProject(api.platform, org);
  const owner = { org_id: org.id, project_id: project.id };
  await db.updateTable("project").set({ backups_limit_bytes }).where("id", "=", project.id).execute();
  const folder = join(dir, project.id);
  await mkdir(folder);
  const stored = join(dir, `${project.id}-stored`);
  const disk = { ...createDiskStorage({ dir: stored }), ...more };
  const runtime = runtimeDouble({
    readStorage: async (_, signal) => readFolder(folder, signal),
    writeStorage: (_, ...what) => writeFolder(folder, ...what),
    removeStored: async (_, path) => (await rm(join(folder, path), { recursive: true, force: true }), true),
  });
  const platform = platformBeside(api, { ports: { runtime, storages: storagesDouble({ disk }) } });
  const work = async () => {
    const operation = await takeOperation(db, "here", nothingInProgress);
    assert.ok(operation);
    const lease = { table: "backup_operation", id: operation.id, owner: "here", fence: operation.fence } as const;
    await performBackupWork(platform, operation, lease, never);
  };
  const row = (id: string) => db.selectFrom("backup").selectAll().where("id", "=", id).executeTakeFirst();
  const backUp = async () => {
    const wanted = { ...owner, content: "files", origin: "manual" } as const;
    const asked = await db.transaction().execute((tx) => requestBackup(tx, wakeups, wanted));
    assert.ok(asked.outcome === "requested");
    await work();
    await applyRetention(platform, owner);
    return asked.id;
  };
  const ask = async (backup_id: string, kind: "restore" | "verify") => {
    const asked = await db.transaction().execute((tx) => requestOperation(tx, wakeups, { ...owner, backup_id, kind }));
    await work();
    const operation = await db
      .selectFrom("backup_operation")
      .select(["status", "problem_code", "database_name"])
      .where("id", "=", asked?.id ?? "")
      .executeTakeFirstOrThrow();
    return { ...operation, verification: (await row(backup_id))?.verification };
  };
  const files = join(stored, org.id, project.id, "files");
  const names = async () => (await readdir(files)).filter((name) => !name.endsWith(".list"));
  return { owner, folder, files, platform, work, row, backUp, ask, names };
}

const abandon = (project: { project_id: string }) =>
  db
    .updateTable("backup_operation")
    .set({ lease_until: new Date(0) })
    .where("project_id", "=", project.project_id)
    .execute();

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
  const [name = ""] = await names();
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
    const { owner, folder, backUp, work, ask, row, names } = await stage({ put });
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
  const { folder, backUp, row } = await stage({}, 5 * mib);
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
  const full = await stage({ put: () => Promise.reject(new StorageFull()) });
  await writeFile(join(full.folder, "a"), "x");
  const failed = await full.row(await full.backUp());
  assert.deepEqual([failed?.status, failed?.problem_code], ["failed", "storage_full"]);
});
