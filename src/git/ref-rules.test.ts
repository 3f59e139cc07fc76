import assert from "node:assert/strict";
import { test } from "node:test";
import { parseRefUpdates, refuseRefs } from "./ref-rules.ts";

const [zero, one] = ["0".repeat(40), "1".repeat(40)];
const project = { id: "prj_1", organization_id: "org_1", slug: "demo", deploy_branch: "main" };
const refuse = (name: string, to: string | null = one) => refuseRefs(project, [{ name, old: one, new: to }]);

test("git's lines become updates, zeros become null", () => {
  const text = `${zero} ${one} refs/heads/main\n${one} ${zero} refs/tags/v1\n`;
  assert.deepEqual(parseRefUpdates(text), [
    { name: "refs/heads/main", old: null, new: one },
    { name: "refs/tags/v1", old: one, new: null },
  ]);
});

test("anything else than git's lines is no push", () => {
  for (const text of ["x", `${one} ${one} HEAD\n`, `${one} refs/heads/main\n`])
    assert.equal(parseRefUpdates(text), null, text);
});

test("branches and tags pass; other refs, no refs and too many refs do not", () => {
  assert.equal(refuse("refs/heads/topic"), null);
  assert.equal(refuse("refs/tags/v1"), null);
  assert.match(refuse("refs/notes/commits") ?? "", /Only branches and tags/);
  assert.match(refuse("refs/heads/") ?? "", /Only branches and tags/);
  assert.match(refuseRefs(project, []) ?? "", /no branch/);
  const many = Array.from({ length: 1001 }, (_, i) => ({ name: `refs/tags/v${i}`, old: null, new: one }));
  assert.match(refuseRefs(project, many) ?? "", /more than 1000/);
});

test("the deploy branch cannot be deleted, another branch can", () => {
  assert.match(refuse("refs/heads/main", null) ?? "", /cannot be deleted/);
  assert.equal(refuse("refs/heads/topic", null), null);
});
