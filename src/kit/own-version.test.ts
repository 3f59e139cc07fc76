import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { readVersion, versionText } from "./own-version.ts";

const commit = "0123456789abcdef0123456789abcdef01234567";

test("a clone names the commit that is checked out, a release the one that it was built from", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "berth-version-"));
  t.after(() => rm(folder, { recursive: true }));
  await writeFile(join(folder, "package.json"), '{"version": "1.2.3"}');
  assert.deepEqual(readVersion(folder), { version: "1.2.3", commit: null });
  await mkdir(join(folder, ".git/refs/heads"), { recursive: true });
  await writeFile(join(folder, ".git/HEAD"), "ref: refs/heads/main\n");
  await writeFile(join(folder, ".git/packed-refs"), `# pack-refs\n${commit} refs/heads/main\n`);
  assert.deepEqual(readVersion(folder), { version: "1.2.3", commit });
  const newer = commit.replaceAll("0", "f");
  await writeFile(join(folder, ".git/refs/heads/main"), `${newer}\n`);
  assert.equal(readVersion(folder).commit, newer);
  await writeFile(join(folder, ".git/HEAD"), `${commit}\n`);
  assert.equal(versionText(readVersion(folder)), "1.2.3 (01234567)");
  await writeFile(join(folder, "release.json"), JSON.stringify({ version: "2.0.0", commit: newer }));
  assert.deepEqual(readVersion(folder), { version: "2.0.0", commit: newer });
});
