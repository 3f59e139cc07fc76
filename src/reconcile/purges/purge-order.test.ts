import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { testProject } from "../../../test/support/fixtures.ts";
import { platformBeside } from "../../../test/support/platform-double.ts";
import { builderDouble } from "../../../test/support/port-doubles.ts";
import { testApi, testOrganization, type TestApi, type TestOrganization } from "../../../test/support/test-platform.ts";
import { silentLog } from "../../kit/log.ts";
import { createDriver, type Driver } from "../driver.ts";
import { purgesTask } from "./purges-task.ts";

describe("purges and undeletions of one project at the same moment", () => {
  let api: TestApi;
  let org: TestOrganization;
  let driver: Driver;
  before(async () => {
    api = await testApi();
    org = await testOrganization(api.database.db, "home", { maxProjects: 100 });
    const platform = platformBeside(api, { ports: { builder: builderDouble({ images: async () => [] }) } });
    driver = createDriver({
      tasks: [purgesTask(platform, () => driver.wake("purges"))],
      wakeups: platform.wakeups,
      log: silentLog,
    });
    await driver.start();
  });
  after(async () => {
    await driver.stop();
    await api.close();
  });

  const call = (method: string, path: string) => api.call(method, `/v1/projects/${path}`, { token: org.owner });

  it("all succeed or are refused for what the others did, none for the database", async () => {
    for (let round = 0; round < 6; round += 1) {
      const { id, slug } = await testProject(api.platform, org, `demo-${round}`);
      assert.equal((await call("DELETE", slug)).status, 200);
      const calls = Array.from({ length: 10 }, () => [
        call("DELETE", `${slug}?purge=true`),
        call("POST", `${slug}/undelete`),
      ]);
      for (const { status, text } of await Promise.all(calls.flat()))
        assert.ok([200, 404, 409].includes(status), `${status} ${text}`);
      const project = await api.database.db
        .selectFrom("project")
        .select(["deleted_at", "purged_at"])
        .where("id", "=", id)
        .executeTakeFirstOrThrow();
      assert.ok(project.purged_at === null || project.deleted_at !== null, "a purged project came back");
    }
  });
});
