import assert from "node:assert/strict";
import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { testFolder } from "../../test/support/test-folder.ts";
import { writeGitFiles } from "./git-files.ts";

const root = testFolder("files");

test("git's own user may read the hooks", async () => {
  const { hooksDir } = await writeGitFiles(join(root, "readable"), 1000);
  assert.equal((await stat(hooksDir)).mode & 0o777, 0o755);
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
