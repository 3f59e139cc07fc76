import assert from "node:assert/strict";
import { test } from "node:test";
import { chooseNodeVersion, nodeRange, nodeWish } from "./node-version.ts";
import { parsePackageJson } from "./package-json.ts";
import { testTree } from "./test-tree.ts";

test("what people write becomes a range", () => {
  assert.equal(nodeRange("v20.11.0\n"), "20.11.0");
  assert.equal(nodeRange("lts/jod"), "22");
  assert.equal(nodeRange("lts/*"), "*");
  assert.equal(nodeRange("node"), "*");
  assert.equal(nodeRange(">=18 <21"), ">=18.0.0 <21.0.0-0");
  assert.equal(nodeRange("20.x"), ">=20.0.0 <21.0.0-0");
  assert.equal(nodeRange("banana"), null);
  assert.equal(nodeRange(""), null);
});

test("engines.node comes before .nvmrc before .node-version", () => {
  const files = { ".nvmrc": "20", ".node-version": "18.0.0" };
  assert.equal(nodeWish(parsePackageJson(`{"engines":{"node":"22"}}`), testTree(files))?.range, ">=22.0.0 <23.0.0-0");
  assert.equal(nodeWish(parsePackageJson("{}"), testTree(files))?.range, ">=20.0.0 <21.0.0-0");
  assert.equal(nodeWish(parsePackageJson("{}"), testTree({ ".node-version": "18.0.0" }))?.range, "18.0.0");
  assert.equal(nodeWish(parsePackageJson("{}"), testTree({})), null);
});

test("the platform's own version is used when it fits, else the newest long-term one", () => {
  const known = ["18.20.8", "20.20.2", "21.7.3", "22.23.3", "23.11.1", "24.21.0", "25.9.0"];
  assert.equal(chooseNodeVersion(">=18", "24.21.0", known), "24.21.0");
  assert.equal(chooseNodeVersion("^20.0.0 || ^22.0.0", "24.21.0", known), "22.23.3");
  assert.equal(chooseNodeVersion("<24", "24.21.0", known), "22.23.3");
  assert.equal(chooseNodeVersion("23", "24.21.0", known), "23.11.1");
  assert.equal(chooseNodeVersion("99", "24.21.0", known), null);
});
