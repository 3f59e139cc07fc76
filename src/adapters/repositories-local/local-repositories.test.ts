import assert from "node:assert/strict";
import { mkdir, mkdtemp, readdir, rm, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { runOk, systemPath } from "../../kit/exec.ts";
import { silentLog } from "../../kit/log.ts";
import { repositoriesSuite, type RepositoriesSubject } from "../../ports/repositories.suite.ts";
import { createLocalRepositories } from "./local-repositories.ts";

const root = await mkdtemp(join(tmpdir(), "berth-repositories-"));
after(() => rm(root, { recursive: true, force: true }));

async function git(
  dir: string,
  args: readonly string[],
  options: { input?: string; env?: object } = {},
): Promise<string> {
  const env = { PATH: systemPath, HOME: "/nonexistent", GIT_CONFIG_NOSYSTEM: "1", ...options.env };
  const result = await runOk({ file: "git", args }, { cwd: dir, env, timeoutMs: 60_000, stdin: options.input ?? "" });
  return result.stdout.trim();
}

repositoriesSuite("repositories-local", async (): Promise<RepositoriesSubject> => {
  const repositories = await createLocalRepositories({ dir: join(root, "suite"), log: silentLog });
  return { repositories, git, close: async () => {} };
});

test("sweep removes old quarantines, old locks and half deleted repositories, and nothing young", async () => {
  const dir = join(root, "sweep");
  const repositories = await createLocalRepositories({ dir, log: silentLog });
  const repository = await repositories.ensure("prj_swept");
  const old = [
    join(repository, "objects", "tmp_objdir-incoming-old"),
    join(dir, ".new-old"),
    join(dir, ".deleted-old"),
  ];
  const young = join(repository, "objects", "tmp_objdir-incoming-new");
  for (const folder of [...old, young]) await mkdir(folder);
  const lock = join(repository, "refs", "heads", "main.lock");
  await writeFile(lock, "");
  for (const path of [...old, lock]) await utimes(path, 0, 0);
  await repositories.sweep();
  assert.deepEqual((await readdir(dir)).sort(), ["gitconfig", "prj_swept"]);
  assert.deepEqual((await readdir(join(repository, "objects"))).sort(), ["info", "pack", "tmp_objdir-incoming-new"]);
  assert.deepEqual(await readdir(join(repository, "refs", "heads")), []);
});
