import assert from "node:assert/strict";
import { test } from "node:test";
import type { RefChange } from "../../ports/repositories.ts";
import { deployRef, hasWatched } from "./rules.ts";

const commit = "a".repeat(40);
const pushed = (...names: string[]): RefChange[] =>
  names.map((name) => ({ name: `refs/heads/${name}`, old: null, new: commit }));

test("the first push deploys main before master before the first branch", () => {
  const branchOf = (...names: string[]) => {
    const decision = deployRef(pushed(...names), null);
    return decision.outcome === "deploy" ? decision.branch : decision.outcome;
  };
  assert.equal(branchOf("feature", "master", "main"), "main");
  assert.equal(branchOf("feature", "master"), "master");
  assert.equal(branchOf("feature", "other"), "feature");
});

test("later pushes deploy the branch that was deployed first, and only that one", () => {
  const decision = deployRef(pushed("main", "trunk"), "trunk");
  assert.equal(decision.outcome, "deploy");
  assert.equal(decision.outcome === "deploy" && decision.branch, "trunk");
});

test("other branches are stored and say that they do not deploy", () => {
  const decision = deployRef(pushed("feature"), "main");
  assert.equal(decision.outcome, "stored");
  assert.match(
    decision.outcome === "stored" ? decision.notes.join() : "",
    /feature was stored but not deployed: only main deploys/,
  );
});

test("tags alone deploy nothing, and the pusher reads so", () => {
  const decision = deployRef([{ name: "refs/tags/v1", old: null, new: commit }], null);
  assert.equal(decision.outcome, "stored");
  assert.match(
    decision.outcome === "stored" ? decision.notes.join() : "",
    /v1: stored as a tag; tags do not deploy: git push <remote> main/,
  );
});

test("the deploy branch cannot be deleted", () => {
  assert.equal(deployRef([{ name: "refs/heads/main", old: commit, new: null }], "main").outcome, "refused");
});

test("a watched path is a file, a folder with all in it, or a pattern", () => {
  const watches = (pattern: string, path: string) => hasWatched([path], [pattern]);
  assert.ok(
    watches("apps/web/**", "apps/web/src/index.js") &&
      watches("apps/web", "apps/web/a") &&
      watches("./package.json", "package.json"),
  );
  assert.ok(
    watches("**/*.sql", "db/1.sql") &&
      !watches("apps/web/**", "apps/website/a") &&
      !watches("apps/web", "apps/website/a"),
  );
  assert.ok(watches("apps/**", "apps/.env") && watches("{apps,libs}/web", "libs/web"));
});

test("patterns that take too long to match deploy", () => {
  const path = "a".repeat(200);
  assert.ok(!hasWatched([path], ["*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b"]));
  const patterns = Array.from({ length: 100 }, () => `${"*a".repeat(200)}b`);
  assert.ok(hasWatched(Array<string>(1000).fill(path), patterns));
});
