import { mkdir, mkdtemp, readdir, rename, rm, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";

const scratchPrefix = ".part-";
const abandonedAfterMs = 60 * 60 * 1000;

/**
 * Lets `fill` write to a scratch folder and renames that to `target`, so that `target` is complete or absent. Of two at once the first to
 * finish wins, and both succeed. Leftovers of interrupted runs are removed after an hour.
 */
export async function installInto(target: string, fill: (folder: string) => Promise<void>): Promise<void> {
  const parent = dirname(target);
  await mkdir(parent, { recursive: true });
  await sweep(parent);
  const scratch = await mkdtemp(join(parent, `${scratchPrefix}${basename(target)}-`));
  try {
    const content = join(scratch, "content");
    await mkdir(content, { mode: 0o755 });
    await fill(content);
    await rename(content, target).catch(toleratePresence);
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

function toleratePresence(error: NodeJS.ErrnoException): void {
  if (error.code !== "ENOTEMPTY" && error.code !== "EEXIST") throw error;
}

async function sweep(parent: string): Promise<void> {
  for (const name of await readdir(parent)) {
    if (!name.startsWith(scratchPrefix)) continue;
    const path = join(parent, name);
    const found = await stat(path).catch(() => null);
    if (found && Date.now() - found.mtimeMs > abandonedAfterMs) await rm(path, { recursive: true, force: true });
  }
}
