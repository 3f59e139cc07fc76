import { readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";

/** No push lives this long: build, queue and start together are bounded well below it. */
const quarantineAgeMs = 6 * 3600_000;
/** git holds a lock for milliseconds; what is this old was left by a killed process and would block every later push. */
const lockAgeMs = 10 * 60_000;

/** When this is, and when the machine was started: nothing that is older than that belongs to a living process. */
export interface Moment {
  readonly nowMs: number;
  readonly bootMs: number;
}

const deadBefore = ({ nowMs, bootMs }: Moment, ageMs: number): number => Math.max(nowMs - ageMs, bootMs);

/** Removes quarantines and locks that killed processes left in one repository. */
export async function sweepLeftovers(repositoryDir: string, moment: Moment): Promise<void> {
  const objects = join(repositoryDir, "objects");
  for (const name of await names(objects))
    if (name.startsWith("tmp_objdir-") || name.startsWith("incoming-"))
      await removeOlder(join(objects, name), deadBefore(moment, quarantineAgeMs));
  for (const name of await names(join(objects, "pack")))
    if (name.startsWith("tmp_")) await removeOlder(join(objects, "pack", name), deadBefore(moment, quarantineAgeMs));
  for (const name of ["HEAD.lock", "config.lock", "packed-refs.lock", "shallow.lock", "gc.pid"])
    await removeOlder(join(repositoryDir, name), deadBefore(moment, lockAgeMs));
  for (const entry of await readdir(join(repositoryDir, "refs"), { recursive: true }).catch(() => []))
    if (entry.endsWith(".lock")) await removeOlder(join(repositoryDir, "refs", entry), deadBefore(moment, lockAgeMs));
}

/** Removes folders that were being made when the process died. */
export async function sweepDraft(draftDir: string, moment: Moment): Promise<void> {
  await removeOlder(draftDir, deadBefore(moment, lockAgeMs));
}

async function names(dir: string): Promise<string[]> {
  return readdir(dir).catch(() => []);
}

async function removeOlder(path: string, beforeMs: number): Promise<void> {
  const found = await stat(path).catch(() => null);
  if (found !== null && found.mtimeMs < beforeMs) await rm(path, { recursive: true, force: true });
}
