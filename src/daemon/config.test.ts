import assert from "node:assert/strict";
import { test } from "node:test";
import { limits } from "../contract/limits.ts";
import { httpLimitsOf, pushLimitsOf, readConfig } from "./config.ts";

test("without settings the limits are those that the contract names", () => {
  const config = readConfig({});
  for (const [name, value] of Object.entries(pushLimitsOf(config)))
    assert.equal(value, limits[name as keyof typeof limits], name);
  const { readsPerMinute, writesPerMinute } = httpLimitsOf(config);
  assert.deepEqual([readsPerMinute, writesPerMinute], [limits.reads_per_minute, limits.writes_per_minute]);
});

test("each limit follows its setting", () => {
  const config = readConfig({ BERTH_READS_PER_MINUTE: "5", BERTH_TREE_MIB: "20" });
  const { pack_bytes, tree_bytes } = pushLimitsOf(config);
  assert.deepEqual([pack_bytes, tree_bytes], [5 * 1024 ** 2, 20 * 1024 ** 2]);
  assert.equal(httpLimitsOf(config).readsPerMinute, 5);
});

test("limits that belong together have one setting, and the first of the control plane's names is its own", () => {
  const { packMib, imageMib, silenceSeconds } = readConfig({});
  assert.deepEqual([packMib, imageMib, silenceSeconds], [256, 4096, 300]);
  assert.equal(readConfig({ BERTH_TREE_MIB: "65536" }).packMib, 1024);
  const names = (BERTH_HOST?: string) => {
    const { host, hosts } = readConfig({ BERTH_HOST });
    return [host, ...hosts];
  };
  assert.deepEqual(
    [names(), names("a.test"), names("a.test, b.test")],
    [["localhost"], ["a.test"], ["a.test", "b.test"]],
  );
});
