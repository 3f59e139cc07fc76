import assert from "node:assert/strict";
import { test } from "node:test";
import { testBuild, testProject } from "../../../test/support/fixtures.ts";
import { sharedApi, testOrganization } from "../../../test/support/test-platform.ts";
import { deployBuild } from "./deployments.ts";

const api = await sharedApi();
const { db } = api.database;
const image = {
  image_ref: "sha256:0",
  kind: "static",
  web_command: "",
  processes: {},
  release_command: null,
  size_bytes: 0,
} as const;

test("of two pushes from the same commit only the first goes live; a push or upload onto it and a redeploy may follow", async () => {
  const org = await testOrganization(db, "acme");
  const owner = { org_id: org.id, project_id: (await testProject(api.platform, org)).id };
  const [start, first, second, next] = ["0", "1", "2", "3"].map((digit) => digit.repeat(40)) as [
    string,
    string,
    string,
    string,
  ];
  const build = async (commit: string, old_commit: string, parent: string | null = null) => {
    const build_id = await testBuild(api.platform, owner, { status: "succeeded" });
    await db.updateTable("build").set({ commit, old_commit }).where("id", "=", build_id).execute();
    return { build_id, commit, old_commit, parent };
  };
  /** Deploys a build, at once with success; returns the outcome. */
  const deploy = async (built: Awaited<ReturnType<typeof build>>, trigger: "push" | "upload" | "redeploy" = "push") => {
    const source = { ...owner, ...built, image, trigger, branch: "main", owner: null, rehearse_only: false };
    const made = await db.transaction().execute((tx) => deployBuild(api.platform, tx, source));
    if (made.outcome !== "made") return made.outcome;
    const ofProject = db.updateTable("deployment").where("project_id", "=", owner.project_id);
    await ofProject.set({ status: "retired" }).where("status", "=", "active").execute();
    await ofProject.set({ status: "active", activated_at: new Date() }).where("id", "=", made.id).execute();
    return made.outcome;
  };
  const [one, other] = [await build(first, start), await build(second, start)];
  assert.deepEqual([await deploy(one), await deploy(other)], ["made", "branch_moved"]);
  assert.equal(await deploy(await build(next, first)), "made");
  const uploaded = await build("4".repeat(40), first, "5".repeat(40));
  const continuing = await build("6".repeat(40), first, next);
  assert.deepEqual([await deploy(uploaded, "upload"), await deploy(continuing, "upload")], ["branch_moved", "made"]);
  assert.equal(await deploy(other, "redeploy"), "made");
});
