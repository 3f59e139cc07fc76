import assert from "node:assert/strict";
import { test } from "node:test";
import { testThings } from "../../../test/support/fixtures.ts";
import { sharedApi, testOrganization, testToken } from "../../../test/support/test-platform.ts";
import { scopes } from "../../contract/access.ts";
import { newId } from "../../kit/ids.ts";

const api = await sharedApi();
const org = await testOrganization(api.database.db, "acme");

const agent = (await testToken(api.database.db, org.id, { role: "owner", scopes, approval_mode: true })).text;

const megabyte = 1e6;

/** A project with this many completed backups of this size, of the gigabyte that its backups may take. */
async function projectWith(count: number, { origin, bytes }: { origin: "manual" | "daily"; bytes: number }) {
  const { project } = await testThings(api.platform, org);
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
  ]) {
    assert.deepEqual(await full(agent), [409, "conflict"]);
    assert.deepEqual(await full(org.member), [201, undefined]);
  }
});
