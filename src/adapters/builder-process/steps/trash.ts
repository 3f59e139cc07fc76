import { randomBytes } from "node:crypto";
import { chmod, mkdir, readdir, rename } from "node:fs/promises";
import { join } from "node:path";
import { run } from "../../../kit/exec.ts";

/** Deletes folders in the background: one with millions of files takes minutes, and neither a build nor a shutdown may wait for that. */
export type Trash = Awaited<ReturnType<typeof openTrash>>;

/** Opens the folder into which discarded files are moved, on the same disk as those, and deletes what an earlier process left in it. */
export async function openTrash(folder: string) {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const stopping = new AbortController();
  let work = Promise.resolve();
  const queue = (name: string) => {
    work = work.then(() => remove(join(folder, name), stopping.signal));
  };
  for (const name of await readdir(folder)) queue(name);
  return {
    /** Moves the folder or file away at once and deletes it later. A missing one is not an error. */
    async discard(path: string) {
      const name = randomBytes(8).toString("hex");
      if (await moved(path, join(folder, name))) queue(name);
    },
    /** Resolves when everything is deleted. */
    settle: () => work,
    /** Stops deleting; the next start continues with what is left. */
    stop: () => {
      stopping.abort();
      return work;
    },
  };
}

async function moved(from: string, to: string): Promise<boolean> {
  try {
    await rename(from, to);
    return true;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") return false;
    if (code !== "EACCES") throw error;
    // Moving a folder changes its `..` entry, which the folder's mode may forbid an ordinary user.
    await chmod(from, 0o700);
    await rename(from, to);
    return true;
  }
}

async function remove(folder: string, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  const rm = { file: "rm", args: ["--recursive", "--force", "--", folder] };
  if ((await run(rm, { signal })).exitCode === 0) return;
  // Builds may leave folders that even their owner may not change, such as Go's module cache.
  await run({ file: "chmod", args: ["--recursive", "u+rwX", folder] }, { signal });
  await run(rm, { signal });
}
