import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { mkdir, mkdtemp, readdir, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { describe, it, test } from "node:test";
import { run } from "../../kit/exec.ts";
import { storageSuite } from "../../ports/storage.suite.ts";
import { StorageFull, StorageMissing } from "../../ports/storage.ts";
import { createDiskStorage } from "./disk-storage.ts";

storageSuite(async () => {
  const dir = await mkdtemp(join(tmpdir(), "berth-storage-"));
  const unfinished = join(dir, ".unfinished");
  return {
    storage: createDiskStorage({ dir }),
    async interruptPut(key) {
      await mkdir(unfinished, { recursive: true });
      await writeFile(join(unfinished, `${encodeURIComponent(key)}.${randomBytes(6).toString("hex")}`), "half a fi");
    },
    unfinished: async () => (await readdir(unfinished)).length,
    close: () => rm(dir, { recursive: true }),
  };
});

test("files and folders are closed to others", async () => {
  const dir = await mkdtemp(join(tmpdir(), "berth-storage-"));
  try {
    await createDiskStorage({ dir: join(dir, "deep") }).put("a/b", Readable.from([Buffer.from("x")]));
    for (const [path, mode] of [
      ["deep", 0o700],
      ["deep/a", 0o700],
      ["deep/a/b", 0o600],
    ] as const)
      assert.equal((await stat(join(dir, path))).mode & 0o777, mode, path);
  } finally {
    await rm(dir, { recursive: true });
  }
});

describe("a disk that is full", () => {
  it("says so and keeps nothing", async (context) => {
    const dir = await mkdtemp(join(tmpdir(), "berth-storage-"));
    try {
      const mounted = await run({ file: "mount", args: ["-t", "tmpfs", "-o", "size=1m", "tmpfs", dir] });
      if (mounted.exitCode !== 0) return context.skip("a file system of a fixed size cannot be mounted here");
      const storage = createDiskStorage({ dir });
      assert.ok(((await storage.free()) ?? 0) <= 1024 * 1024);
      const content = Readable.from(Array.from({ length: 30 }, () => randomBytes(100_000)));
      await assert.rejects(storage.put("too/large", content), StorageFull);
      await assert.rejects(storage.open("too/large"), StorageMissing);
      assert.deepEqual(await readdir(join(dir, ".unfinished")), []);
    } finally {
      await run({ file: "umount", args: [dir] });
      await rm(dir, { recursive: true, force: true });
    }
  });
});
