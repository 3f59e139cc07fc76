import assert from "node:assert/strict";
import { test } from "node:test";
import { sql } from "kysely";
import { testBuild, testDeployment, testProject } from "../../../test/support/fixtures.ts";
import { sharedApi, testOrganization } from "../../../test/support/test-platform.ts";
import { newId } from "../../kit/ids.ts";
import { deleteOldActivity, deleteOldBuilds, deleteOldDeployments } from "./activity.ts";

const kept = { days: 400, perProject: 2 };
const api = await sharedApi();

test("old deployments go with their builds, but for the newest, those that serve, and those that a rollback needs", async () => {
  const { db } = api.database;
  const org = await testOrganization(db, "acme");
  const owner = { org_id: org.id, project_id: (await testProject(api.platform, org)).id };
  const made = new Map<number, { deployment: string; build: string }>();
  for (const number of [1, 2, 3, 4, 5, 6, 7]) {
    const build = await testBuild(api.platform, owner, { status: "succeeded" });
    const status = number === 3 ? "active" : "retired";
    const deployment = await testDeployment(api.platform, owner, { build_id: build, number, status });
    made.set(number, { deployment, build });
  }
  await sql`update deployment set created_at = now() - interval '500 days', activated_at = now(), image_pruned_at = case when number = 4 then null else now() end`.execute(
    db,
  );
  await sql`update build set created_at = now() - interval '500 days', finished_at = now()`.execute(db);
  await sql`update deployment set rolled_back_from = ${made.get(2)?.deployment} where number = 7`.execute(db);
  assert.equal(await deleteOldDeployments(db, kept), 2);
  assert.deepEqual(new Set(await deleteOldBuilds(db, kept)), new Set([made.get(1)?.build, made.get(5)?.build]));
  const rows = await db.selectFrom("deployment").select("number").orderBy("number").execute();
  assert.deepEqual(
    rows.map(({ number }) => number),
    [2, 3, 4, 6, 7],
  );
  assert.equal(await deleteOldDeployments(db, kept), 0);
});

test("old activity goes, and that of the last years stays", async () => {
  const { db } = api.database;
  const org = await testOrganization(db, "audited");
  for (const days of [10, 399, 401])
    await sql`insert into activity (org_id, action, target, detail, created_at, actor_name, id)
      values (${org.id}, 'x', '', '{}', now() - make_interval(days => ${days}), '', ${newId("evt")})`.execute(db);
  assert.equal(await deleteOldActivity(db, kept), 1);
  assert.equal(await deleteOldActivity(db, kept), 0);
});
