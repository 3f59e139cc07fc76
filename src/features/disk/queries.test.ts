import assert from "node:assert/strict";
import { test } from "node:test";
import { testProject } from "../../../test/support/fixtures.ts";
import {
  emptyDisk,
  sharedApi,
  testDiskLimits as limits,
  testOrganization,
} from "../../../test/support/test-platform.ts";
import { requireRoomForBuild } from "./disk.ts";
import * as queries from "./queries.ts";

const api = await sharedApi();

test("a project is measured when it is due, the sooner the nearer it is to its limit, and listed once it is over", async () => {
  const { db } = api.database;
  const org = await testOrganization(db, "acme");
  const owner = { org_id: org.id, project_id: (await testProject(api.platform, org)).id };
  const due = await queries.takeDueProject(db);
  assert.equal(due?.project_id, owner.project_id);
  assert.equal(await queries.takeDueProject(db), undefined);
  const save = async (storage_bytes: number | null, tookMs = 12.5) => {
    await queries.saveMeasured(db, owner.project_id, { storage_bytes, images_bytes: 7, limits, tookMs });
    const row = await db.selectFrom("disk_use").select("next_at").executeTakeFirstOrThrow();
    return Math.round((Date.parse(row.next_at) - Date.now()) / 1000);
  };
  const seconds = [await save(0), await save(2e8), await save(9e8), await save(null), await save(9e8, 5_000_000)];
  for (const [index, expected] of [600, 60, 15, 600, 100_000].entries())
    assert.ok(Math.abs((seconds[index] ?? 0) - expected) < 5, `${seconds[index]} instead of ${expected}`);
  assert.deepEqual(await queries.undecidedProjects(db, limits, false), []);
  await queries.saveDatabaseSize(db, owner, { size_bytes: 2e9, compacting: false });
  const [over] = await queries.undecidedProjects(db, limits, false);
  assert.deepEqual([over?.database_bytes, over?.storage_bytes, over?.access], [2e9, 9e8, "open"]);
  assert.deepEqual(await queries.averageUse(db), { storage: 9e8, database: 2e9 });
  const state = { access: "read_only", ceiling_bytes: 3e9, closings: 0, reopens_at: null } as const;
  await db
    .transaction()
    .execute((tx) => queries.saveAccess(tx, owner.project_id, { storage: "read_only", database: state }));
  assert.deepEqual(await queries.storageOf(db, owner.project_id), {
    storage_access: "read_only",
    has_stored_files: true,
  });
  await db.updateTable("project").set({ storage: false }).where("id", "=", owner.project_id).execute();
  assert.deepEqual(await queries.storageOf(db, owner.project_id), { storage_access: "none", has_stored_files: false });
  await queries.measureAllSoon(db);
  await db.transaction().execute((tx) => queries.setOwnLimits(tx, owner, { database_limit_bytes: 4e9 }));
  const { use, own } = await queries.selectDiskUse(db, owner);
  assert.deepEqual([own.database_limit_bytes, use.database_access, use.images_bytes], [4e9, "read_only", 7]);
});

test("a build is refused while the disk of the data folder or the builder's own is short of space", async () => {
  const roomWhen = (dataIsShort: boolean, builderIsShort: boolean) => {
    const dataDisk = { ...emptyDisk, observe: async () => ({ ...(await emptyDisk.observe()), is_short: dataIsShort }) };
    const ports = {
      ...api.platform.ports,
      dataDisk,
      builder: { ...api.platform.ports.builder, isShortOfSpace: async () => builderIsShort },
    };
    return requireRoomForBuild({
      platform: { ...api.platform, ports },
      fail: (code) => {
        throw new Error(code);
      },
    });
  };
  await roomWhen(false, false);
  await assert.rejects(roomWhen(true, false), /storage_full/);
  await assert.rejects(roomWhen(false, true), /storage_full/);
});
