import assert from "node:assert/strict";
import { test } from "node:test";
import type { Result } from "../../contract/routes.ts";
import { testBuild, testProject } from "../../../test/support/fixtures.ts";
import { sharedApi, testOrganization, testToken } from "../../../test/support/test-platform.ts";

const api = await sharedApi();
const org = await testOrganization(api.database.db, "home");

async function diagnose(slug: string, token = org.member) {
  const { status, body, text } = await api.call("GET", `/v1/projects/${slug}/diagnosis`, { token });
  assert.equal(status, 200, text);
  return { status, body: body as unknown as Result<"diagnosis.get"> };
}

test("a project is diagnosed from its builds, with the request that shows more", async () => {
  const { id, slug } = await testProject(api.platform, org);
  const [first] = (await diagnose(slug)).body.findings;
  assert.deepEqual([first?.severity, first?.code, first?.next], ["down", "nothing_deployed", null]);
  assert.equal(first?.sentence, "Nothing is deployed yet.");
  const failure = { stage: "install", code: "install_failed", summary: "npm failed", hint: "Commit it.", log_tail: [] };
  const build = await testBuild(api.platform, { org_id: org.id, project_id: id }, { status: "failed" });
  await api.database.db
    .updateTable("build")
    .set({ failure: JSON.stringify(failure) })
    .where("id", "=", build)
    .execute();
  const { body } = await diagnose(slug);
  assert.deepEqual(body.findings, [
    {
      severity: "down",
      code: "install_failed",
      sentence: `Build ${body.build?.number} failed; nothing is deployed yet.`,
      advice: body.findings[0]?.advice,
      seen: { build, number: body.build?.number, commit: body.build?.commit },
      failure,
      next: { route: "builds.logs", method: "GET", path: `/v1/builds/${build}/logs` },
    },
  ]);
  assert.deepEqual([body.project.slug, body.unread], [slug, []]);
});

test("what the caller may not read is named and left out", async () => {
  const { slug } = await testProject(api.platform, org);
  const narrow = await testToken(api.database.db, org.id, { role: "member", scopes: ["projects:read"] });
  const { status, body } = await diagnose(slug, narrow.text);
  assert.equal(status, 200);
  assert.equal(body.build, null);
  const refused = body.unread.map(({ route, code }) => `${route} ${code}`);
  assert.ok(refused.includes("builds.list insufficient_scope") && refused.includes("logs.list insufficient_scope"));
});

test("the diagnosis of a deleted project is refused as every other route of it", async () => {
  const { slug } = await testProject(api.platform, org);
  await api.call("DELETE", `/v1/projects/${slug}`, { token: org.owner });
  const { status, body } = await api.call("GET", `/v1/projects/${slug}/diagnosis`, { token: org.member });
  assert.deepEqual([status, body["code"]], [409, "project_deleted"]);
});
