import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { testBuild, testDeployment, testProject } from "../../../test/support/things.ts";
import { testApi, testOrganization, type TestApi, type TestOrganization } from "../../../test/support/test-platform.ts";
import { restartWithVariables, rollBack } from "./deployments.ts";

let api: TestApi;
let org: TestOrganization;

before(async () => {
  api = await testApi();
  org = await testOrganization(api.database.db, "rollback");
});
after(() => api.close());

/** A project whose deployments go live as soon as they are made. */
async function history() {
  const { db } = api.database;
  const { id: project_id } = await testProject(api.platform, org);
  const owner = { org_id: org.id, project_id };
  const numbers = new Map<string, number>();
  const goLive = async (id: string, number: number) => {
    await db
      .updateTable("deployment")
      .set({ status: "retired" })
      .where("project_id", "=", project_id)
      .where("status", "=", "active")
      .execute();
    await db
      .updateTable("deployment")
      .set({ status: "active", activated_at: new Date() })
      .where("id", "=", id)
      .execute();
    numbers.set(id, number);
  };
  let pushed = 0;
  const take = async (made: ReturnType<typeof rollBack>) => {
    const result = await made;
    if (result.outcome !== "made") return result.outcome;
    await goLive(result.id, result.number);
    pushed = result.number;
    const row = await db
      .selectFrom("deployment")
      .select("restored_from")
      .where("id", "=", result.id)
      .executeTakeFirstOrThrow();
    return row.restored_from === null ? null : numbers.get(row.restored_from);
  };
  return {
    async push() {
      const build_id = await testBuild(api.platform, owner, { status: "succeeded" });
      pushed += 1;
      await goLive(await testDeployment(api.platform, owner, { build_id, number: pushed, status: "pending" }), pushed);
    },
    changeVariables: () => take(db.transaction().execute((tx) => restartWithVariables(api.platform, tx, owner))),
    /** The number of the deployment that was brought back. */
    rollBack: () => take(db.transaction().execute((tx) => rollBack(api.platform, tx, owner))),
  };
}

test("each rollback goes one further back, until there is nothing", async () => {
  const project = await history();
  for (let count = 0; count < 3; count += 1) await project.push();
  assert.deepEqual([await project.rollBack(), await project.rollBack(), await project.rollBack()], [2, 1, "nothing"]);
});

test("variables that are changed after a rollback are rolled back to what served before, not to what was left behind", async () => {
  const project = await history();
  await project.push();
  await project.push();
  assert.equal(await project.rollBack(), 1);
  assert.equal(await project.changeVariables(), null);
  assert.deepEqual([await project.rollBack(), await project.rollBack()], [1, "nothing"]);
});

test("a push after a rollback is rolled back to what the rollback had brought back", async () => {
  const project = await history();
  await project.push();
  await project.push();
  assert.equal(await project.rollBack(), 1);
  await project.push();
  assert.deepEqual([await project.rollBack(), await project.rollBack()], [1, "nothing"]);
});
