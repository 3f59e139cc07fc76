import { randomBytes } from "node:crypto";
import { rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { openFolder, readSmallFile, visitFiles } from "../../kit/open-folder.ts";

/**
 * Removes a ref's file if it is empty or all zeros; returns whether it was. git writes refs to a temporary file and renames it, so only a
 * power failure leaves such a file, and it would block every push to the ref. An older value in packed-refs then applies again.
 */
export async function removeDamagedRef(repositoryDir: string, ref: string): Promise<boolean> {
  const names = ref.split("/");
  await using folder = await openFolder(repositoryDir, ...names.slice(0, -1));
  const file = `${folder?.path}/${names.at(-1)}`;
  if (folder === undefined || !(await holdsNothing(file))) return false;
  await rm(file, { force: true });
  return true;
}

export async function removeDamagedRefs(repositoryDir: string): Promise<void> {
  await using refs = await openFolder(repositoryDir, "refs");
  if (refs === undefined) return;
  await visitFiles(refs, async (file, names) => {
    if (!names.at(-1)?.endsWith(".lock") && (await holdsNothing(file))) await rm(file, { force: true });
  });
}

/** Points a damaged HEAD at a branch again: without a valid HEAD, git does not recognise the repository. */
export async function repairHead(repositoryDir: string): Promise<void> {
  const file = join(repositoryDir, "HEAD");
  if (!(await holdsNothing(file))) return;
  const draft = `${file}.${randomBytes(4).toString("hex")}`;
  await writeFile(draft, "ref: refs/heads/main\n", { flush: true, flag: "wx" });
  await rename(draft, file);
}

/** Returns whether a file is empty or all zeros, which is what remains of data that was not written in time. */
async function holdsNothing(file: string): Promise<boolean> {
  return (await readSmallFile(file))?.every((byte) => byte === 0) ?? false;
}
