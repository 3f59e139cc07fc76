import assert from "node:assert/strict";
import { mkdir, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { testFolder } from "../../test/support/test-folder.ts";
import { runOk, systemPath } from "../kit/exec.ts";
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

test("a branch can be deleted while another git writes packed refs", async () => {
  const { configFile } = await writeGitFiles(join(root, "waiting"), 1000);
  const cwd = join(root, "refs.git");
  const env = { PATH: systemPath, GIT_CONFIG_GLOBAL: configFile, GIT_CONFIG_NOSYSTEM: "1" };
  const git = (...args: string[]) => runOk({ file: "git", args }, { cwd, env, stdin: "" });
  await mkdir(cwd);
  await git("init", "--quiet", "--bare");
  const empty = (await git("mktree")).stdout.trim();
  const as = ["-c", "user.name=A", "-c", "user.email=a@b"];
  const commit = (await git(...as, "commit-tree", empty, "-m", "One")).stdout.trim();
  await git("update-ref", "refs/heads/old", commit);
  await git("pack-refs", "--all");
  const lock = join(cwd, "packed-refs.lock");
  await writeFile(lock, "");
  const deleting = git("update-ref", "-d", "refs/heads/old");
  await Promise.all([deleting, sleep(300).then(() => rm(lock))]);
  assert.equal((await git("for-each-ref")).stdout, "");
});

test("what a push has moved is on the disk when the pusher is told", async () => {
  const { configFile } = await writeGitFiles(join(root, "durable"), 1000);
  assert.match(await readFile(configFile, "utf8"), /^\tfsync = committed$/m);
});
