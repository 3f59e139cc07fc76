import assert from "node:assert/strict";
import { test } from "node:test";
import { testThings } from "../../../test/support/fixtures.ts";
import { platformBeside } from "../../../test/support/platform-double.ts";
import { postgresHostDouble } from "../../../test/support/port-doubles.ts";
import { sharedApi, testOrganization } from "../../../test/support/test-platform.ts";
import { archivesTask } from "./archives-task.ts";

test("a database on the operator's own server has no archive, which says why", async () => {
  const api = await sharedApi();
  const org = await testOrganization(api.database.db, "acme");
  const { project } = await testThings(api.platform, org);
  const postgresHost = postgresHostDouble({ history: () => null, hasProcess: () => true });
  await archivesTask(platformBeside(api, { ports: { postgresHost } })).run(new AbortController().signal);
  const path = `/v1/projects/${project.slug}/database/archive`;
  const { body } = await api.call("GET", path, { token: org.member });
  assert.deepEqual([body["status"], body["windows"]], ["unavailable", []]);
  assert.match(String(body["reason"]), /operator's own PostgreSQL server, whose log Berth does not archive/);
});
