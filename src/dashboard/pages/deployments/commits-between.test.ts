import assert from "node:assert/strict";
import { test } from "node:test";
import { commitsBetween } from "./commits-between.ts";

const deployment = (number: number, commit: string, trigger: "push" | "rollback" = "push") => ({
  number,
  commit,
  trigger,
  build_id: `of ${commit}`,
  activated_at: "2026-01-01T00:00:00Z",
});
const builds = ["a", "b", "c", "d"].map((commit) => ({ id: `of ${commit}`, message: `Change ${commit}` }));
const namesOf = (found: ReturnType<typeof commitsBetween>) => [found.way, ...found.commits.map(({ commit }) => commit)];

test("a rollback undoes each commit that served after its target, the newest first", () => {
  const deployments = [deployment(4, "d"), deployment(3, "c"), deployment(2, "b"), deployment(1, "a")];
  const found = commitsBetween(deployments, builds, { active: 4, target: 2 });
  assert.deepEqual(namesOf(found), ["undone", "d", "c"]);
  assert.equal(found.commits[0]?.message, "Change d");
});

test("a deployment that never served and another start of the same commit undo nothing", () => {
  const deployments = [
    deployment(4, "a"),
    { ...deployment(3, "c"), activated_at: null },
    deployment(2, "a"),
    deployment(1, "a"),
  ];
  assert.deepEqual(namesOf(commitsBetween(deployments, builds, { active: 4, target: 1 })), ["undone"]);
});

test("after a rollback only what still serves is undone, and a later commit comes back", () => {
  const deployments = [deployment(4, "b", "rollback"), deployment(3, "c"), deployment(2, "b"), deployment(1, "a")];
  assert.deepEqual(namesOf(commitsBetween(deployments, builds, { active: 4, target: 1 })), ["undone", "b"]);
  assert.deepEqual(namesOf(commitsBetween(deployments, builds, { active: 4, target: 3 })), ["back", "c"]);
});
