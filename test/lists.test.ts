import assert from "node:assert/strict";
import { test } from "node:test";
import { newId } from "../src/kit/ids.ts";
import { testBuild, testDeployment, testProject } from "./support/fixtures.ts";
import { sharedApi, testOrganization } from "./support/test-platform.ts";

const count = 205;
const api = await sharedApi();
const org = await testOrganization(api.database.db, "acme");

const project = await testProject(api.platform, org, "demo");
const owner = { org_id: org.id, project_id: project.id };
for (let number = 1; number <= count; number += 1) {
  const build_id = await testBuild(api.platform, owner, { status: "succeeded" });
  await testDeployment(api.platform, owner, { build_id, number, status: "failed" });
  const backup = { ...owner, id: newId("bak"), origin: "manual", status: "completed" } as const;
  await api.database.db.insertInto("backup").values(backup).execute();
}

for (const noun of ["deployments", "builds", "backups"]) {
  test(`${noun} are listed newest first in pages of 100, and next_cursor continues without a gap or a repetition`, async () => {
    const keys: string[] = [];
    const sizes: number[] = [];
    let cursor: string | null = "";
    while (cursor !== null) {
      const { status, body } = await api.call(
        "GET",
        `/v1/projects/demo/${noun}${cursor === "" ? "" : `?cursor=${cursor}`}`,
        { token: org.member },
      );
      assert.equal(status, 200);
      // Ids created in the same millisecond have no order, so rows with numbers are compared by number.
      const page = (body[noun] as { id: string; number?: number }[]).map(({ id, number }) =>
        String(number ?? id).padStart(9, "0"),
      );
      sizes.push(page.length);
      keys.push(...page);
      cursor = body["next_cursor"] as string | null;
    }
    assert.deepEqual(sizes, [100, 100, 5]);
    assert.equal(new Set(keys).size, count);
    assert.deepEqual(keys, keys.toSorted().reverse());
    const wrong = await api.call("GET", `/v1/projects/demo/${noun}?cursor=!`, { token: org.member });
    assert.deepEqual([wrong.status, wrong.body["code"]], [400, "invalid_request"]);
  });
}
