import assert from "node:assert/strict";
import { test } from "node:test";
import { standOf, type OverviewProject } from "./stand.ts";

const deployment = {} as NonNullable<OverviewProject["active_deployment"]>;
const empty = {
  state: "active",
  active_deployment: null,
  last_deployment: null,
  replicas: { ready: 0, wanted: 0 },
  attention: [],
} as unknown as OverviewProject;
const live: OverviewProject = { ...empty, active_deployment: deployment, replicas: { ready: 1, wanted: 1 } };

test("a project whose only build failed is failed, not empty", () => {
  assert.equal(standOf(empty).word, "Empty");
  assert.deepEqual(standOf({ ...empty, attention: ["build_failed"] }), { tone: "bad", word: "Failed" });
});

test("an application that keeps crashing is not live between two crashes", () => {
  assert.equal(standOf(live).word, "Live");
  assert.deepEqual(standOf({ ...live, attention: ["crashing"] }), { tone: "bad", word: "Crashing" });
  assert.equal(standOf({ ...live, attention: ["build_failed"] }).word, "Live");
});
