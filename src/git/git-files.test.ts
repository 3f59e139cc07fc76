import assert from "node:assert/strict";
import { mkdir, readdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { testFolder } from "../../test/support/test-folder.ts";
import { writeGitFiles } from "./git-files.ts";

const root = testFolder("files");

test("what an older version left in the folder is removed", async () => {
  const dir = join(root, "older");
  await mkdir(join(dir, "hooks"), { recursive: true, mode: 0o700 });
  for (const name of ["hook-0011.sock", "hooks/post-receive"]) await writeFile(join(dir, name), "");
  const { hooksDir } = await writeGitFiles(dir, 1000);
  assert.deepEqual((await readdir(dir)).sort(), ["gitconfig", "hooks"]);
  assert.deepEqual(await readdir(hooksDir), ["pre-receive"]);
  assert.equal((await stat(hooksDir)).mode & 0o777, 0o755, "git's own user runs the hooks");
});

test("written twice at once it is whole", async () => {
  const dir = join(root, "twice");
  await Promise.all([writeGitFiles(dir, 1000), writeGitFiles(dir, 1000)]);
  assert.deepEqual((await readdir(dir)).sort(), ["gitconfig", "hooks"]);
});

test("what a push has moved is on the disk when the pusher is told", async () => {
  const { configFile } = await writeGitFiles(join(root, "durable"), 1000);
  assert.match(await readFile(configFile, "utf8"), /^\tfsync = committed$/m);
});
