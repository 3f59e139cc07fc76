import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { createLocalRepositories } from "../../src/adapters/repositories-local/local-repositories.ts";
import { silentLog } from "../../src/kit/log.ts";
import { repositoriesTask } from "../../src/reconcile/repositories/repositories-task.ts";
import { commitFile, git, makeWorkTree } from "../support/git-servers.ts";
import { testBuild, testDeployment, testProject } from "../support/fixtures.ts";
import { sharedApi, testOrganization } from "../support/test-platform.ts";
import { platformBeside } from "../support/platform-double.ts";
import { testFolder } from "../support/test-folder.ts";

const api = await sharedApi();
const root = testFolder("damaged");

const repositories = await createLocalRepositories({ dir: join(root, "repositories"), log: silentLog });

/** Creates a project whose second pushed commit is active, and its repository. */
async function servingSecondPush(slug: string) {
  const { db } = api.database;
  const org = await testOrganization(db, slug);
  const project = await testProject(api.platform, org);
  const repository = await repositories.ensure(project.id);
  const work = await makeWorkTree(root, slug);
  const first = await git(root, ["-C", work, "rev-parse", "HEAD"]);
  const second = await commitFile(root, work, "more.txt", "more");
  await git(root, ["-C", work, "push", "-q", repository, "main"]);
  const owner = { org_id: org.id, project_id: project.id };
  const build_id = await testBuild(api.platform, owner, { status: "succeeded" });
  const id = await testDeployment(api.platform, owner, { build_id, number: 1, status: "active" });
  await db.updateTable("build").set({ commit: second, old_commit: first }).where("id", "=", build_id).execute();
  const activated_at = new Date(Date.now() - 3_600_000);
  await db.updateTable("deployment").set({ commit: second, activated_at }).where("id", "=", id).execute();
  return { project, repository, work, second };
}

const mend = async () => {
  const task = repositoriesTask(platformBeside(api, { ports: { repositories } }));
  await task.run(new AbortController().signal);
  await task.settle?.();
};

test("a branch file that a power cut emptied points to the active commit again, and accepts pushes", async () => {
  const { project, repository, work, second } = await servingSecondPush("emptied");
  await writeFile(join(repository, "refs", "heads", "main"), "");
  await mend();
  assert.equal(await repositories.resolve(project.id, "refs/heads/main"), second);
  await commitFile(root, work, "third.txt", "third");
  await git(root, ["-C", work, "push", "-q", repository, "main"]);
});

test("a branch that has moved since the deployment is not changed", async () => {
  const { project, repository, work } = await servingSecondPush("moved");
  const third = await commitFile(root, work, "third.txt", "third");
  await git(root, ["-C", work, "push", "-q", repository, "main"]);
  await mend();
  assert.equal(await repositories.resolve(project.id, "refs/heads/main"), third);
});
