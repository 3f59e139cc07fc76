import { once } from "node:events";
import { createWriteStream, existsSync, mkdirSync, readdirSync, renameSync, rmSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { pipeline } from "node:stream/promises";
import { start } from "./exec.ts";

const copiesOf = (folder: string) => join(dirname(folder), ".copies", basename(folder));

/**
 * Copies a folder as a tar file in `.copies` beside it and deletes the folder's copies that are not in `keep`. Returns the copy's bytes once
 * it is complete and on disk; null when there is no folder.
 */
export async function addCopy(
  folder: string,
  { id, keep }: { readonly id: string; readonly keep: readonly string[] },
): Promise<number | null> {
  if (!existsSync(folder)) return null;
  const dir = copiesOf(folder);
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  const [unfinished, finished] = [join(dir, "unfinished"), join(dir, `${id}.tar`)];
  // As the folder's owner, who may rearrange it meanwhile so that a walk by root would read other files.
  const { uid, gid } = statSync(folder);
  const command = { file: "tar", args: ["--create", "--one-file-system", "--file=-", "."] };
  const tar = start(command, { cwd: folder, uid, gid });
  const [[exitCode]] = await Promise.all([
    once(tar, "close") as Promise<[number | null]>,
    pipeline(tar.stdout, createWriteStream(unfinished, { mode: 0o600, flush: true })),
  ]);
  // 1: a file changed or disappeared while it was read.
  if (exitCode !== 0 && exitCode !== 1) throw new Error(`tar ended with ${exitCode}`);
  renameSync(unfinished, finished);
  const kept = new Set([id, ...keep].map((each) => `${each}.tar`));
  for (const name of readdirSync(dir)) if (!kept.has(name)) rmSync(join(dir, name), { force: true });
  return statSync(finished).size;
}

/** Deletes all copies of a folder. */
export function removeCopies(folder: string): void {
  rmSync(copiesOf(folder), { recursive: true, force: true });
}
