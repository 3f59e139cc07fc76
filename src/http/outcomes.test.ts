import assert from "node:assert/strict";
import { test } from "node:test";
import { testProject } from "../../test/support/fixtures.ts";
import { testApi, testOrganization, type TestApi } from "../../test/support/test-platform.ts";
import { until } from "../kit/until.ts";
import { guardMs } from "../../test/support/eventually.ts";

/** Requests a database on a platform where no task creates one, and waits until the request is in the database. */
async function askForDatabase(api: TestApi) {
  const { db } = api.database;
  const org = await testOrganization(db, "acme");
  const { slug } = await testProject(api.platform, org);
  const asked = api.call("POST", `/v1/projects/${slug}/database`, { token: org.owner });
  const row = () => db.selectFrom("project_database").select("id").executeTakeFirst();
  assert.ok(await until(row, { timeoutMs: guardMs }));
  return { asked };
}

test("who waits for an outcome is told at once that the platform stops, and keeps no stop waiting", async () => {
  const api = await testApi();
  const { asked } = await askForDatabase(api);
  await api.close();
  const { status, body } = await asked;
  assert.deepEqual([status, body["code"], body["error"]], [503, "unavailable", "The platform is stopping."]);
});

test("who waits longer for an outcome than the platform waits is told that it goes on", async () => {
  const api = await testApi({ http: { limits: { outcomeDeadlineMs: 20 } } });
  const { status, body } = await (await askForDatabase(api)).asked;
  await api.close();
  assert.deepEqual([status, body["code"]], [503, "unavailable"]);
  assert.match(String(body["error"]), /continues in the background/);
});
