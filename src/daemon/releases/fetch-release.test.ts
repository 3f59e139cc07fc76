import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fetchRelease } from "./fetch-release.ts";

test("an installed version needs no place to come from; any other does", async (t) => {
  const prefix = await mkdtemp(join(tmpdir(), "berth-fetch-"));
  t.after(() => rm(prefix, { recursive: true }));
  const versions = join(prefix, "versions");
  await mkdir(join(versions, "0.1.0"), { recursive: true });
  await writeFile(join(versions, "0.1.0/release.json"), "{}");
  const origin = { standard: null, seen: join(prefix, "seen") };
  assert.equal(await fetchRelease({ prefix, versions }, "0.1.0", origin), "0.1.0");
  await assert.rejects(fetchRelease({ prefix, versions }, "0.2.0", origin), /BERTH_RELEASE_URL is not set/);
});
