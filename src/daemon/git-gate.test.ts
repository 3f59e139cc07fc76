import assert from "node:assert/strict";
import { test } from "node:test";
import { admitCode } from "./git-gate.ts";

const [first, other] = [{ slug: "main" }, { slug: "guests" }];

test("a machine with namespaces runs every organization's code", () => {
  const admits = admitCode(["namespaces", "cgroups"], false);
  assert.deepEqual([admits(first), admits(other)], [true, true]);
});

test("a machine without namespaces runs only the first organization's code, unless the operator allows it", () => {
  const admits = admitCode(["cgroups"], false);
  assert.deepEqual([admits(first), admits(other)], [true, false]);
  assert.equal(admitCode(["cgroups"], true)(other), true);
});
