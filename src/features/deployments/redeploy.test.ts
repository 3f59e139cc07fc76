import assert from "node:assert/strict";
import { test } from "node:test";
import { testBuild, testDeployment, testProject } from "../../../test/support/fixtures.ts";
import { sharedApi, testOrganization } from "../../../test/support/test-platform.ts";

const api = await sharedApi();
const org = await testOrganization(api.database.db, "redeploy");

test("a redeploy builds what went live last; a push that was refused is built only when its commit is named", async () => {
  const project = await testProject(api.platform, org);
  const owner = { org_id: org.id, project_id: project.id };
  const redeploy = (body: Record<string, unknown> = {}) =>
    api.call("POST", `/v1/projects/${project.slug}/deployments`, { token: org.owner, body });
  const push = async (number: number, commit: string, status: "active" | "failed") => {
    const build_id = await testBuild(api.platform, owner, { status: "succeeded" });
    await api.database.db.updateTable("build").set({ commit }).where("id", "=", build_id).execute();
    await testDeployment(api.platform, owner, { build_id, number, status });
  };
  const [refusedFirst, live, refused] = ["a", "b", "c"].map((letter) => letter.repeat(40)) as [string, string, string];
  await push(1, refusedFirst, "failed");
  assert.equal((await redeploy()).body["code"], "nothing_to_deploy");
  await push(2, live, "active");
  await push(3, refused, "failed");
  assert.equal((await redeploy()).body["commit"], live);
  assert.equal((await redeploy({ commit: refused })).body["commit"], refused);
});
