import { randomBytes } from "node:crypto";
import { readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";

/**
 * Removes a ref's file that holds nothing: git writes refs aside and renames them, so only a machine that lost its power leaves one,
 * and no push could move it any more. Another value in packed-refs shows again. Answers whether there was one.
 */
export async function removeDamagedRef(repositoryDir: string, ref: string): Promise<boolean> {
  const file = join(repositoryDir, ref);
  if (!(await holdsNothing(file))) return false;
  await rm(file, { force: true });
  return true;
}

/** Removes all of them. */
export async function removeDamagedRefs(repositoryDir: string): Promise<void> {
  const entries = await readdir(join(repositoryDir, "refs"), { recursive: true, withFileTypes: true }).catch(() => []);
  for (const entry of entries) {
    const file = join(entry.parentPath, entry.name);
    if (entry.isFile() && !entry.name.endsWith(".lock") && (await holdsNothing(file))) await rm(file, { force: true });
  }
}

/** Makes a HEAD that holds nothing name a branch again: without one git sees no repository. */
export async function repairHead(repositoryDir: string): Promise<void> {
  const file = join(repositoryDir, "HEAD");
  if (!(await holdsNothing(file))) return;
  const draft = `${file}.${randomBytes(4).toString("hex")}`;
  await writeFile(draft, "ref: refs/heads/main\n", { flush: true });
  await rename(draft, file);
}

/** A file system gives back nothing, or zeros, of what it had no time to write. */
async function holdsNothing(file: string): Promise<boolean> {
  const content = await readFile(file).catch(() => null);
  return content?.every((byte) => byte === 0) ?? false;
}
