import assert from "node:assert/strict";
import { test } from "node:test";
import { z } from "zod";
import { routes } from "../src/contract/routes.ts";
import type { Row } from "../src/contract/table.ts";
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

test("every list with pages takes the size of a page", async () => {
  const paged = (routes as readonly Row[]).filter(({ query, result }) => "cursor" in query.shape && hasNext(result));
  assert.ok(paged.length > 10);
  assert.deepEqual(
    paged.filter(({ query }) => !("limit" in query.shape)).map(({ name }) => name),
    [],
  );
  const get = (path: string) => api.call("GET", `/v1/projects/demo/${path}`, { token: org.member });
  const first = await get("deployments?limit=2");
  const next = await get(`deployments?limit=2&cursor=${String(first.body["next_cursor"])}`);
  const numbers = [first, next].flatMap(({ body }) =>
    (body["deployments"] as { number: number }[]).map((row) => row.number),
  );
  assert.deepEqual(numbers, [count, count - 1, count - 2, count - 3]);
  assert.equal((await get("deployments?limit=101")).status, 400);
});

const hasNext = (result: Row["result"]) => result instanceof z.ZodObject && "next_cursor" in result.shape;
