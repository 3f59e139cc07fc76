import assert from "node:assert/strict";
import { test } from "node:test";
import { eventually } from "../../test/support/eventually.ts";
import { testProject } from "../../test/support/fixtures.ts";
import { repositoriesDouble } from "../../test/support/port-doubles.ts";
import { sharedApi, testOrganization } from "../../test/support/test-platform.ts";

const written = Promise.withResolvers<void>();
let writing = 0;
const repositories = repositoriesDouble({
  async write() {
    writing += 1;
    await written.promise;
    return { outcome: "refused", code: "invalid", summary: "The archive contains no file." };
  },
});

const api = await sharedApi({ ports: { repositories }, http: { limits: { sourceRequestsPerOrganization: 2 } } });
const org = await testOrganization(api.database.db, "acme");
const other = await testOrganization(api.database.db, "other");
await testProject(api.platform, org, "demo");
await testProject(api.platform, other, "demo");

const body = { files: [{ path: "a", text: "a" }] };
const plan = (token: string) => api.call("POST", "/v1/projects/demo/plan", { token, body: {} });

test("an organization has few uploads, changes and plans in progress, by whichever token; others do not feel it", async () => {
  const open = [
    api.call("PATCH", "/v1/projects/demo/source", { token: org.owner, body }),
    api.call("POST", "/v1/projects/demo/plan", { token: org.member, body }),
  ];
  await eventually(() => writing === 2, "both write");
  for (const token of [org.owner, org.member, org.operator]) {
    const refused = await plan(token);
    assert.deepEqual([refused.status, refused.body["code"]], [429, "rate_limited"]);
    assert.match(String(refused.body["error"]), /organization has 2 uploads/);
  }
  assert.equal((await plan(other.member)).body["code"], "nothing_to_deploy");
  written.resolve();
  for (const each of await Promise.all(open)) assert.equal(each.status, 400);
  assert.equal((await plan(org.member)).body["code"], "nothing_to_deploy");
});
