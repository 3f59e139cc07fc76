import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { mkdir, mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after } from "node:test";
import { createDiskStorage } from "../../src/adapters/storage-disk/disk-storage.ts";
import { requestBackup, requestOperation, takeOperation } from "../../src/features/backups/backups.ts";
import { run } from "../../src/kit/exec.ts";
import { readFolder, writeFolder } from "../../src/kit/folder-tar.ts";
import { listBelow, readBelow, statBelow } from "../../src/kit/look-into-folder.ts";
import { movedBy, moving } from "../../src/kit/move-below.ts";
import type { Storage } from "../../src/ports/storage.ts";
import { applyRetention } from "../../src/reconcile/backups/backup-upkeep.ts";
import { performBackupWork } from "../../src/reconcile/backups/backup-work.ts";
import { testProject } from "./fixtures.ts";
import { nothingInProgress } from "./nothing-in-progress.ts";
import { platformBeside } from "./platform-double.ts";
import { runtimeDouble, storagesDouble } from "./port-doubles.ts";
import { sharedApi, testOrganization } from "./test-platform.ts";

const never = new AbortController().signal;

interface Given {
  readonly storage?: Partial<Storage>;
  /** Runs each change of the storage folder. */
  readonly around?: <T>(change: () => Promise<T>) => Promise<T>;
  readonly backups_limit_bytes?: number | null;
}
type Restored = Partial<Parameters<typeof requestOperation>[2]>;

/** Returns what makes projects with a storage folder, whose backups go to a disk storage of their own. */
export async function filesStages() {
  const api = await sharedApi();
  const { db, wakeups } = api.platform;
  const dir = await mkdtemp(join(tmpdir(), "berth-files-"));
  after(() => rm(dir, { recursive: true, force: true }));
  const stage = async ({ storage = {}, around = (change) => change(), backups_limit_bytes = null }: Given = {}) => {
    const org = await testOrganization(db, `files-${randomBytes(4).toString("hex")}`);
    const project = await testProject(api.platform, org);
    const owner = { org_id: org.id, project_id: project.id };
    await db.updateTable("project").set({ backups_limit_bytes }).where("id", "=", project.id).execute();
    const folder = join(dir, project.id);
    await mkdir(folder);
    const stored = join(dir, `${project.id}-stored`);
    const disk = { ...createDiskStorage({ dir: stored }), ...storage };
    const runtime = runtimeDouble({
      readStorage: async (_, signal) => readFolder(folder, signal),
      writeStorage: (_, ...what) => around(() => writeFolder(folder, ...what)),
      removeStored: (_, path) =>
        around(async () => (await rm(join(folder, path), { recursive: true, force: true }), true)),
      listStored: (_, place) => listBelow({ ...place, folder }),
      readStored: (_, place) => readBelow({ ...place, folder }),
      statStored: (_, path) => statBelow({ folder, path }),
      async moveStored(_, move, signal) {
        return around(async () => movedBy(await run(moving(move), { cwd: folder, signal }), move));
      },
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
      await applyRetention(platform, new AbortController().signal, owner);
      return asked.id;
    };
    const ask = async (backup_id: string | null, kind: "restore" | "verify", what: Restored = {}) => {
      const wanted = { ...owner, backup_id, kind, ...what };
      const asked = await db.transaction().execute((tx) => requestOperation(tx, wakeups, wanted));
      await work();
      return outcome(asked?.id ?? "", backup_id);
    };
    const outcome = async (id: string, backup_id: string | null) => {
      const operation = await db
        .selectFrom("backup_operation")
        .select(["status", "problem_code", "problem", "database_name"])
        .where("id", "=", id)
        .executeTakeFirstOrThrow();
      return { ...operation, verification: (await row(backup_id ?? ""))?.verification };
    };
    const files = join(stored, org.id, project.id, "files");
    const names = async () => (await readdir(files)).filter((name) => !name.endsWith(".list"));
    return { owner, folder, files, platform, work, row, backUp, ask, outcome, names };
  };
  const abandon = (project: { project_id: string }) =>
    db
      .updateTable("backup_operation")
      .set({ lease_until: new Date(0) })
      .where("project_id", "=", project.project_id)
      .execute();
  return { api, dir, stage, abandon };
}
