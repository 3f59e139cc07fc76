import { lstat, readdir } from "node:fs/promises";
import { runOk } from "../../kit/exec.ts";
import { openFolder } from "../../kit/open-folder.ts";

/** No push lives this long: build, queue and start together are bounded well below it. */
const quarantineAgeMs = 6 * 3600_000;
/** A repository is made within seconds. */
const draftAgeMs = 10 * 60_000;

/** When this is, and when the machine was started: nothing that is older than that belongs to a living process. */
export interface Moment {
  readonly nowMs: number;
  readonly bootMs: number;
}

const deadBefore = ({ nowMs, bootMs }: Moment, ageMs: number): number => Math.max(nowMs - ageMs, bootMs);

/** Removes quarantines and temporary packs that killed processes left in one repository. */
export async function sweepLeftovers(repositoryDir: string, moment: Moment): Promise<void> {
  const beforeMs = deadBefore(moment, quarantineAgeMs);
  await sweepFolder([repositoryDir, "objects"], /^(?:tmp_objdir-|incoming-)/, beforeMs);
  await sweepFolder([repositoryDir, "objects", "pack"], /^tmp_/, beforeMs);
  await sweepFolder([repositoryDir], /^gc\.pid$/, beforeMs);
}

/** Removes repositories that were being made, or removed, when the process died. */
export async function sweepDrafts(repositoriesDir: string, moment: Moment): Promise<void> {
  await sweepFolder([repositoriesDir], /^\.new-/, deadBefore(moment, draftAgeMs));
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

/** `rm` goes down by descriptors, so that a process that rearranges the folder meanwhile leads it nowhere else. */
async function removeIn(folder: string, name: string): Promise<void> {
  await runOk({ file: "rm", args: ["--recursive", "--force", "--", name] }, { cwd: folder });
}
