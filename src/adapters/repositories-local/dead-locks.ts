import { lstat, readlink, rm } from "node:fs/promises";
import { createKeyedMutex } from "../../kit/keyed-mutex.ts";
import { openFolder, visitFiles } from "../../kit/open-folder.ts";
import { processIds, readProcessFile } from "../../kit/processes.ts";

const topLocks = ["HEAD.lock", "config.lock", "packed-refs.lock", "shallow.lock"];
const runExclusive = createKeyedMutex();

/** Removes locks that a killed git left behind, if no git is running in the repository: each lock would make every push to its branch fail. */
export function removeDeadLocks(repositoryDir: string): Promise<void> {
  return runExclusive(repositoryDir, async () => {
    // Find the locks before checking processes: if a lock's holder is alive, the check sees it, and a git that starts later can't acquire
    // these locks.
    const locks = await findLocks(repositoryDir);
    if (locks.length === 0 || (await isGitAtWork(repositoryDir))) return;
    for (const names of locks) await removeLock(repositoryDir, names);
  });
}

async function findLocks(repositoryDir: string): Promise<readonly (readonly string[])[]> {
  const found: (readonly string[])[] = [];
  for (const name of topLocks) if (await lstat(`${repositoryDir}/${name}`).catch(() => undefined)) found.push([name]);
  await using refs = await openFolder(repositoryDir, "refs");
  if (refs !== undefined)
    await visitFiles(refs, async (_file, names) => {
      if (names.at(-1)?.endsWith(".lock")) found.push(["refs", ...names]);
    });
  return found;
}

async function removeLock(repositoryDir: string, names: readonly string[]): Promise<void> {
  await using folder = await openFolder(repositoryDir, ...names.slice(0, -1));
  if (folder !== undefined) await rm(`${folder.path}/${names.at(-1)}`, { force: true });
}

/** Returns whether a process uses the repository, by its arguments, environment and working directory. Earlier control planes' count, too. */
async function isGitAtWork(repositoryDir: string): Promise<boolean> {
  for (const pid of processIds()) {
    if (pid === process.pid) continue;
    if ((["cmdline", "environ"] as const).some((file) => readProcessFile(pid, file).includes(repositoryDir)))
      return true;
    if ((await readlink(`/proc/${pid}/cwd`).catch(() => "")) === repositoryDir) return true;
  }
  return false;
}
