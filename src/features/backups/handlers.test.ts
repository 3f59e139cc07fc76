import assert from "node:assert/strict";
import { test } from "node:test";
import { eventually } from "../../../test/support/eventually.ts";
import { testProject, testThings } from "../../../test/support/fixtures.ts";
import { sharedApi, testOrganization, testToken } from "../../../test/support/test-platform.ts";
import { scopes } from "../../contract/access.ts";
import { newId } from "../../kit/ids.ts";
import { saveDatabaseSize } from "../disk/queries.ts";

const api = await sharedApi();
const org = await testOrganization(api.database.db, "acme");

const agent = (await testToken(api.database.db, org.id, { role: "owner", scopes, approval_mode: true })).text;

const megabyte = 1e6;

/** A project with this many completed backups of this size, of the gigabyte that its backups may take, and a database. */
async function projectWith(
  count: number,
  { origin, bytes, databaseBytes = 0 }: { origin: "manual" | "daily"; bytes: number; databaseBytes?: number },
) {
  const { project } = await testThings(api.platform, org);
  const database = { size_bytes: databaseBytes, compacting: false };
  await saveDatabaseSize(api.database.db, { org_id: org.id, project_id: project.id }, database);
  await api.database.db.deleteFrom("backup_operation").where("project_id", "=", project.id).execute();
  const row = { org_id: org.id, project_id: project.id, origin, status: "completed", storage: "disk" } as const;
  await api.database.db
    .insertInto("backup")
    .values(Array.from({ length: count }, () => ({ ...row, id: newId("bak"), size_bytes: bytes })))
    .execute();
  return (token: string) =>
    api
      .call("POST", `/v1/projects/${project.slug}/backups`, { token })
      .then(({ status, body }) => [status, body["code"]]);
}

test("a token in approval mode makes backups, but none for which another one would be deleted", async () => {
  const few = await projectWith(5, { origin: "manual", bytes: megabyte });
  assert.deepEqual(await few(agent), [201, undefined]);
  for (const full of [
    await projectWith(20, { origin: "manual", bytes: megabyte }),
    await projectWith(9, { origin: "daily", bytes: 101 * megabyte }),
    await projectWith(5, { origin: "daily", bytes: 101 * megabyte, databaseBytes: 600 * megabyte }),
  ]) {
    assert.deepEqual(await full(agent), [409, "conflict"]);
    assert.deepEqual(await full(org.member), [201, undefined]);
  }
});

test("without a database there is none to restore, whatever backups are there", async () => {
  const { slug } = await testProject(api.platform, org);
  const { body } = await api.call("POST", `/v1/projects/${slug}/restore`, { token: org.owner, body: {} });
  assert.equal(body["code"], "no_database");
});

test("a backup that failed is neither restored nor verified", async () => {
  const { project, backup } = await testThings(api.platform, org);
  const call = (path: string, body?: unknown) => api.call("POST", path, { token: org.owner, body });
  const { db } = api.database;
  for (const { status, body } of [
    await call(`/v1/projects/${project.slug}/restore`, { backup_id: backup }),
    await call(`/v1/backups/${backup}/verify`),
  ]) {
    assert.equal(status, 409);
    assert.match(String(body["error"]), /^Only a completed backup can be/);
  }
  assert.deepEqual(await db.selectFrom("backup_operation").select("id").where("backup_id", "=", backup).execute(), []);
});

test("what only the restore itself finds out is answered with its code and its sentence", async () => {
  const { db } = api.database;
  const codes = {
    backup_damaged: "backup_damaged",
    wal_missing: "wal_missing",
    target_outside_window: "target_outside_window",
    refused: "conflict",
    storage_full: "storage_full",
    platform_fault: "unavailable",
  } as const;
  for (const [problem_code, code] of Object.entries(codes)) {
    const { project, backup } = await testThings(api.platform, org);
    await db.deleteFrom("backup_operation").where("project_id", "=", project.id).execute();
    await db.updateTable("backup").set({ status: "completed", size_bytes: 1 }).where("id", "=", backup).execute();
    const asked = api.call("POST", `/v1/projects/${project.slug}/restore`, {
      token: org.owner,
      body: { backup_id: backup },
    });
    const operation = db.updateTable("backup_operation").where("backup_id", "=", backup);
    const end = operation.set({ status: "failed", problem_code, problem: `It is ${problem_code}.` });
    await eventually(async () => (await end.executeTakeFirst()).numUpdatedRows === 1n, "the restore is requested");
    const { body } = await asked;
    assert.deepEqual([body["code"], body["error"]], [code, `It is ${problem_code}.`]);
  }
});
