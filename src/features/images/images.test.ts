import assert from "node:assert/strict";
import { test } from "node:test";
import { testBuild, testDeployment, testProject } from "../../../test/support/fixtures.ts";
import { sharedApi, testOrganization } from "../../../test/support/test-platform.ts";
import { claimPruning, endPruning } from "./images.ts";

const api = await sharedApi();
const org = await testOrganization(api.database.db, "acme");

/** A project whose deployments have the images `sha256:1`, `sha256:2` … in these states, oldest first. */
async function projectWith(statuses: readonly ("active" | "retired" | "failed" | "starting")[]) {
  const project = await testProject(api.platform, org);
  const owner = { org_id: org.id, project_id: project.id };
  for (const [index, status] of statuses.entries()) {
    const build_id = await testBuild(api.platform, owner, { status: "succeeded" });
    const deployment = await testDeployment(api.platform, owner, { status, build_id, number: index + 1 });
    const good = status === "active" || status === "retired";
    await api.database.db
      .updateTable("deployment")
      .set({ image_ref: `sha256:${index + 1}`, activated_at: good ? new Date() : null })
      .where("id", "=", deployment)
      .execute();
  }
  const images = statuses.map((_, index) => `sha256:${index + 1}`);
  return {
    ...owner,
    id: project.id,
    async giveUp() {
      const { db, wakeups } = api.platform;
      const claimed = await claimPruning(db, { id: project.id, org_id: org.id }, { images, owner: "here" });
      if (claimed !== undefined) await endPruning(db, wakeups, claimed.lease);
      return claimed?.images ?? [];
    },
  };
}

test("the images of the serving deployment and of the five good ones before it are kept", async () => {
  const project = await projectWith([
    "retired",
    "retired",
    "failed",
    "retired",
    "retired",
    "retired",
    "retired",
    "active",
  ]);
  assert.deepEqual(await project.giveUp(), ["sha256:1", "sha256:3"]);
});

test("an image on its way to service is kept", async () => {
  const project = await projectWith(["failed", "active", "starting"]);
  assert.deepEqual(await project.giveUp(), ["sha256:1"]);
});

test("while a build waits or runs nothing is given up, because it may make the same image", async () => {
  const project = await projectWith(["failed", "active"]);
  await testBuild(api.platform, { org_id: org.id, project_id: project.id }, { status: "queued" });
  assert.deepEqual(await project.giveUp(), []);
});

test("a deployment whose image is given up can no longer be rolled back to", async () => {
  const project = await projectWith(["retired", "retired", "retired", "retired", "retired", "retired", "active"]);
  assert.deepEqual(await project.giveUp(), ["sha256:1"]);
  const rows = await api.database.db
    .selectFrom("deployment")
    .select("image_ref")
    .where("project_id", "=", project.id)
    .where("image_pruned_at", "is not", null)
    .execute();
  assert.deepEqual(rows, [{ image_ref: "sha256:1" }]);
});
