import assert from "node:assert/strict";
import { test } from "node:test";
import { placeIn } from "./place-in.ts";

test("every page of a project has its group, also one below it, whatever the project's name", () => {
  const found = (rest: string, slug = "shop") => {
    const { group, tab } = placeIn(`/projects/${slug}${rest}`, slug);
    return [group, tab[1]];
  };
  assert.deepEqual(found(""), ["Overview", "Overview"]);
  assert.deepEqual(found("/logs"), ["Observe", "Logs"]);
  assert.deepEqual(found("/logs", "logs"), ["Observe", "Logs"]);
  assert.deepEqual(found("/database/public/orders"), ["Data", "Database"]);
  assert.deepEqual(found("/runs/1"), ["Configure", "Processes"]);
  for (const rest of ["/deployments", "/builds/bld_1", "/compare"])
    assert.deepEqual(found(rest), ["Deployments", "Deployments"]);
});
