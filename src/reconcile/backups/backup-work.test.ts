import assert from "node:assert/strict";
import { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { testThings } from "../../../test/support/fixtures.ts";
import { sharedApi, testOrganization } from "../../../test/support/test-platform.ts";
import { platformBeside } from "../../../test/support/platform-double.ts";
import { postgresHostDouble, storagesDouble } from "../../../test/support/port-doubles.ts";
import { insertOperation } from "../../features/backups/operations.ts";
import { takeOperation } from "../../features/backups/backups.ts";
import type { Storage } from "../../ports/storage.ts";
import { newId } from "../../kit/ids.ts";
import { nothingInProgress } from "../../../test/support/nothing-in-progress.ts";
import { performBackupWork } from "./backup-work.ts";

const api = await sharedApi();

test("a file is checked as a whole before a database is created for it", async () => {
  const { db } = api.platform;
  const org = await testOrganization(db, "damaged");
  const { project, backup } = await testThings(api.platform, org);
  const stored = {
    status: "completed",
    problem_code: null,
    problem: null,
    storage: "disk",
    storage_key: "k",
    sha256: "0",
  };
  await db
    .updateTable("backup")
    .set(stored as { status: "completed" })
    .where("id", "=", backup)
    .execute();
  const asked = { id: newId("bop"), org_id: org.id, project_id: project.id, backup_id: backup };
  await db.transaction().execute((tx) => insertOperation(tx, { ...asked, kind: "verify", database_name: "verify_2" }));
  const operation = await takeOperation(db, "here", nothingInProgress);
  assert.ok(operation);
  const created: string[] = [];
  const postgresHost = postgresHostDouble({
    createDatabase: async (_, name) => void created.push(name),
    dropDatabase: async () => {},
    restore: async (_, __, { archive }) => void (await text(archive)),
  });
  const disk = { open: async () => Readable.from([Buffer.from("not what was stored")]) } as unknown as Storage;
  const platform = platformBeside(api, { ports: { postgresHost, storages: storagesDouble({ disk }) } });
  const lease = { table: "backup_operation", id: operation.id, owner: "here", fence: operation.fence } as const;
  await performBackupWork(platform, operation, lease, new AbortController().signal);
  const row = await db.selectFrom("backup").select("verification").where("id", "=", backup).executeTakeFirst();
  assert.deepEqual([row?.verification, created], ["failed", []]);
});

test("whoever lost an operation drops nothing: the database of this name is another's now", async () => {
  const { db } = api.platform;
  const org = await testOrganization(db, "acme");
  const { project, backup } = await testThings(api.platform, org);
  const asked = { id: newId("bop"), org_id: org.id, project_id: project.id, backup_id: backup };
  await db.transaction().execute((tx) => insertOperation(tx, { ...asked, kind: "verify", database_name: "verify_1" }));
  const operation = await takeOperation(db, "here", nothingInProgress);
  assert.ok(operation);
  await db
    .updateTable("backup_operation")
    .set({ lease_until: new Date(0) })
    .execute();
  assert.equal(
    await takeOperation(db, "here", { ...nothingInProgress, ids: [operation.id] }),
    undefined,
    "it is under way here",
  );
  assert.ok(await takeOperation(db, "there", nothingInProgress));
  const dropped: string[] = [];
  const postgresHost = postgresHostDouble({ dropDatabase: async (_, name) => void dropped.push(name) });
  const platform = platformBeside(api, { ports: { postgresHost } });
  const lease = { table: "backup_operation", id: operation.id, owner: "here", fence: operation.fence } as const;
  const work = performBackupWork(platform, operation, lease, new AbortController().signal);
  await assert.rejects(work, /lease was lost/);
  assert.deepEqual(dropped, []);
});
