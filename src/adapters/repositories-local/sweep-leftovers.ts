import { lstat, readdir } from "node:fs/promises";
import { uptime } from "node:os";
import { join } from "node:path";
import { runOk } from "../../kit/exec.ts";
import { openFolder } from "../../kit/open-folder.ts";

/** Longer than any push: build, queue and start together have much lower limits. */
const quarantineAgeMs = 6 * 3600_000;
/** Creating a repository takes seconds. */
const draftAgeMs = 10 * 60_000;

/** Files from before the boot belong to no running process. */
const deadBefore = (ageMs: number): number => Date.now() - Math.min(ageMs, uptime() * 1000);

/** Removes quarantines and temporary packs that killed processes left in one repository. */
export async function sweepLeftovers(repositoryDir: string): Promise<void> {
  const beforeMs = deadBefore(quarantineAgeMs);
  await sweepFolder([repositoryDir, "objects"], /^(?:tmp_objdir-|incoming-)/, beforeMs);
  await sweepFolder([repositoryDir, "objects", "pack"], /^tmp_/, beforeMs);
  await sweepFolder([repositoryDir], /^gc\.pid$/, beforeMs);
}

/** Removes repositories whose creation or removal a crash interrupted. */
export async function sweepDrafts(repositoriesDir: string): Promise<void> {
  await sweepFolder([repositoriesDir], /^\.new-/, deadBefore(draftAgeMs));
}

async function sweepFolder([root, ...names]: readonly [string, ...string[]], pattern: RegExp, beforeMs: number) {
  await using folder = await openFolder(root, ...names);
  if (folder === undefined) return;
  for (const name of await readdir(folder.path)) {
    if (!pattern.test(name)) continue;
    const found = await lstat(`${folder.path}/${name}`).catch(() => null);
    if (found !== null && found.mtimeMs < beforeMs) await removeIn(folder.path, name);
  }
}

/** `rm` descends by file descriptors, so that a process that rearranges the folder meanwhile can't redirect it. */
async function removeIn(folder: string, name: string): Promise<void> {
  await runOk({ file: "rm", args: ["--recursive", "--force", "--", name] }, { cwd: folder });
}

export async function repositoriesIn(dir: string): Promise<string[]> {
  const entries = await readdir(dir, { withFileTypes: true });
  return entries
    .filter((entry) => entry.isDirectory() && !entry.name.startsWith("."))
    .map((entry) => join(dir, entry.name));
}
