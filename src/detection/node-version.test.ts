import assert from "node:assert/strict";
import { test } from "node:test";
import { chooseNodeVersion, nodeRange, nodeWish } from "./node-version.ts";
import { parsePackageJson } from "./package-json.ts";
import { testTree } from "../../test/support/source-tree.ts";

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
  const wishOf = (manifest: string, source: Record<string, string>) =>
    nodeWish(parsePackageJson(manifest), testTree(source));
  const range = (...args: Parameters<typeof wishOf>) => wishOf(...args).wish?.range;
  assert.equal(range(`{"engines":{"node":"22"}}`, files), ">=22.0.0 <23.0.0-0");
  assert.equal(range("{}", files), ">=20.0.0 <21.0.0-0");
  assert.equal(range("{}", { ".node-version": "18.0.0" }), "18.0.0");
  assert.deepEqual(wishOf("{}", {}), { wish: null, notes: [] });
  // Both are obeyed where one version fits both; else the log names the one that does not count.
  assert.equal(range(`{"engines":{"node":">=18"}}`, { ".nvmrc": "20" }), ">=18.0.0 >=20.0.0 <21.0.0-0");
  assert.match(
    wishOf(`{"engines":{"node":"22"}}`, files).notes.join(),
    /Node\.js 20 \(\.nvmrc\) is not used: 22 \(engines/,
  );
});

test("a version file may hold comments, and one that cannot be read is named", () => {
  const of = (source: Record<string, string>) => nodeWish(parsePackageJson("{}"), testTree(source));
  assert.equal(of({ ".nvmrc": "# pinned\nv20\n" }).wish?.range, ">=20.0.0 <21.0.0-0");
  assert.equal(of({ ".tool-versions": "python 3.9\nnodejs 20.11.0 # why\n" }).wish?.range, "20.11.0");
  assert.equal(of({ "mise.toml": '[tools]\nnode = "20"\n' }).wish?.range, ">=20.0.0 <21.0.0-0");
  assert.deepEqual(of({ ".nvmrc": "20;" }), { wish: null, notes: ['.nvmrc says "20;", which Berth cannot read'] });
});

test("the platform's own version is used when it fits, else the newest long-term one", () => {
  const known = ["18.20.8", "20.20.2", "21.7.3", "22.23.3", "23.11.1", "24.21.0", "25.9.0"];
  assert.equal(chooseNodeVersion(">=18", "24.21.0", known), "24.21.0");
  assert.equal(chooseNodeVersion("^20.0.0 || ^22.0.0", "24.21.0", known), "22.23.3");
  assert.equal(chooseNodeVersion("<24", "24.21.0", known), "22.23.3");
  assert.equal(chooseNodeVersion("23", "24.21.0", known), "23.11.1");
  assert.equal(chooseNodeVersion("99", "24.21.0", known), null);
});

test("Volta's version and devEngines are read, and the log names those that do not count", () => {
  const wish = (manifest: object) => nodeWish(parsePackageJson(JSON.stringify(manifest)), testTree({}));
  assert.equal(wish({ volta: { node: "22.1.0" } }).wish?.range, "22.1.0");
  const runtime = [{ name: "bun" }, { name: "node", version: "^20" }];
  assert.equal(wish({ devEngines: { runtime } }).wish?.range, ">=20.0.0 <21.0.0-0");
  assert.match(wish({ engines: { node: "24" }, volta: { node: "20.1.0" } }).notes.join(), /volta\.node .* is not used/);
  assert.match(wish({ volta: { node: "new" } }).notes.join(), /^volta\.node in package\.json says "new"/);
});
