import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { createBuildDisks } from "./build-disks.ts";

const mib = 1024 ** 2;

function engineData(t: TestContext) {
  const dir = mkdtempSync(join(tmpdir(), "berth-build-disks-"));
  t.after(() => rmSync(dir, { recursive: true }));
  const write = (entry: string, size: number) => {
    mkdirSync(join(dir, entry), { recursive: true });
    writeFileSync(join(dir, entry, "file"), Buffer.alloc(size * mib, 1));
  };
  const disks = createBuildDisks(dir);
  /** Starts a build whose commands write these layers. */
  const enter = (layers: readonly string[], state = { isServed: false }) => {
    const taken = disks.enter({ layers: () => layers, isServed: () => state.isServed });
    t.after(() => taken.leave());
    return { taken, mibs: async () => Math.floor(((await taken.bytes()) ?? 0) / mib), state };
  };
  return { write, enter };
}

test("what a build's commands write is its own, and what was there before is no build's", async (t) => {
  const { write, enter } = engineData(t);
  write("overlay2/base", 8);
  const [one, other] = [enter(["a", "cache"]), enter(["b"])];
  write("overlay2/a", 3);
  write("overlay2/b", 1);
  write("overlay2/cache", 2);
  assert.deepEqual([await one.mibs(), await other.mibs()], [5, 1]);
});

test("what the engine writes counts to the build that it serves, and in equal parts to several", async (t) => {
  const { write, enter } = engineData(t);
  const [copies, runs] = [enter([], { isServed: true }), enter(["r"])];
  write("overlay2/copied", 4);
  write("overlay2/r", 1);
  assert.deepEqual([await copies.mibs(), await runs.mibs()], [4, 1]);
  runs.state.isServed = true;
  write("buildkit/content/blobs/sha256/pulled", 6);
  assert.deepEqual([await copies.mibs(), await runs.mibs()], [7, 4]);
  // The other build's end does not free it, and a new build does not have it.
  copies.taken.leave();
  assert.deepEqual([await runs.mibs(), await enter([]).mibs()], [4, 0]);
});
