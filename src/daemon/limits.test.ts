import assert from "node:assert/strict";
import { test } from "node:test";
import { limits } from "../contract/limits.ts";
import { buildMemoryMibOf } from "./build-memory.ts";
import { readConfig } from "./config.ts";
import { httpLimitsOf, pushLimitsOf } from "./limits.ts";

test("without settings the limits are those that the contract names", () => {
  const config = readConfig({});
  for (const [name, value] of Object.entries(pushLimitsOf(config)))
    assert.equal(value, limits[name as keyof typeof limits], name);
  const { bodyBytes, readsPerMinute, writesPerMinute } = httpLimitsOf(config);
  assert.deepEqual(
    [bodyBytes, readsPerMinute, writesPerMinute],
    [limits.request_body_bytes, limits.reads_per_minute, limits.writes_per_minute],
  );
});

test("a build gets half of the machine's memory, at least 2 and at most 8 GiB", () => {
  const gib = 1024 ** 3;
  assert.deepEqual(
    [1, 12, 64].map((size) => buildMemoryMibOf(size * gib)),
    [2048, 6144, 8192],
  );
  const [none, noneInVersion2, container] = [0, 2 ** 64, 8 * gib];
  assert.deepEqual(
    [none, noneInVersion2, container].map((limit) => buildMemoryMibOf(12 * gib, limit)),
    [6144, 6144, 4096],
  );
});

test("each limit follows its setting", () => {
  const config = readConfig({
    BERTH_BODY_KIB: "512",
    BERTH_HEADER_SECONDS: "5",
    BERTH_REQUEST_SECONDS: "60",
    BERTH_PACK_MIB: "10",
    BERTH_TREE_ENTRIES: "1000",
    BERTH_TREE_MIB: "20",
    BERTH_BUILD_LOG_MIB: "2",
  });
  const mib = 1024 * 1024;
  assert.deepEqual(pushLimitsOf(config), {
    pack_bytes: 10 * mib,
    tree_entries: 1000,
    tree_bytes: 20 * mib,
    build_log_bytes: 2 * mib,
  });
  const { bodyBytes, headersTimeoutMs, requestTimeoutMs } = httpLimitsOf(config);
  assert.deepEqual([bodyBytes, headersTimeoutMs, requestTimeoutMs], [mib / 2, 5000, 60_000]);
});
