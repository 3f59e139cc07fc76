import assert from "node:assert/strict";
import { test } from "node:test";
import { buildMemoryMibOf, officialImages } from "./application-settings.ts";
import { readConfig } from "./config.ts";

test("a language's own image wins over the base image, and that over the official one", () => {
  const imagesWith = (BERTH_BASE_IMAGE: string) => readConfig({ BERTH_DATA: "/tmp/x", BERTH_BASE_IMAGE }).parentImages;
  assert.deepEqual(imagesWith(""), officialImages);
  for (const both of ["example/base:1,go=golang:1.26", "go=golang:1.26, example/base:1"])
    assert.deepEqual(imagesWith(both), {
      ...Object.fromEntries(Object.keys(officialImages).map((name) => [name, "example/base:1"])),
      go: "golang:1.26",
    });
  assert.deepEqual(imagesWith("go=golang:1.26"), { ...officialImages, go: "golang:1.26" });
  for (const wrong of ["cobol=example/cobol", "node=", "example/base:1 x"])
    assert.throws(() => imagesWith(wrong), /BERTH_BASE_IMAGE must be images, each with or without one of node, python/);
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

test("a swarm's registry may have a login before its name", () => {
  const registry = (BERTH_SWARM_REGISTRY?: string) => readConfig({ BERTH_SWARM_REGISTRY }).swarmRegistry;
  assert.equal(registry(), null);
  assert.deepEqual(registry("registry.test:5000/berth"), { name: "registry.test:5000/berth", login: null });
  assert.deepEqual(registry("ada:p@ss:w@registry.test/b"), { name: "registry.test/b", login: "ada:p@ss:w" });
});
