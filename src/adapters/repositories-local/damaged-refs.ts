import { randomBytes } from "node:crypto";
import { rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { openFolder, readSmallFile, visitFiles } from "../../kit/open-folder.ts";

/**
 * Removes a ref's file that holds nothing: git writes refs aside and renames them, so only a machine that lost its power leaves one,
 * and no push could move it any more. Another value in packed-refs shows again. Answers whether there was one.
 */
export async function removeDamagedRef(repositoryDir: string, ref: string): Promise<boolean> {
  const names = ref.split("/");
  await using folder = await openFolder(repositoryDir, ...names.slice(0, -1));
  const file = `${folder?.path}/${names.at(-1)}`;
  if (folder === undefined || !(await holdsNothing(file))) return false;
  await rm(file, { force: true });
  return true;
}

/** Removes all of them. */
export async function removeDamagedRefs(repositoryDir: string): Promise<void> {
  await using refs = await openFolder(repositoryDir, "refs");
  if (refs === undefined) return;
  await visitFiles(refs, async (file, names) => {
    if (!names.at(-1)?.endsWith(".lock") && (await holdsNothing(file))) await rm(file, { force: true });
  });
}

/** Makes a HEAD that holds nothing name a branch again: without one git sees no repository. */
export async function repairHead(repositoryDir: string): Promise<void> {
  const file = join(repositoryDir, "HEAD");
  if (!(await holdsNothing(file))) return;
  const draft = `${file}.${randomBytes(4).toString("hex")}`;
  await writeFile(draft, "ref: refs/heads/main\n", { flush: true, flag: "wx" });
  await rename(draft, file);
}

/** A file system gives back nothing, or zeros, of what it had no time to write. */
async function holdsNothing(file: string): Promise<boolean> {
  return (await readSmallFile(file))?.every((byte) => byte === 0) ?? false;
}
