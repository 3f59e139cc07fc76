import { hash } from "node:crypto";
import { mkdir, readFile, readdir, rename, stat, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { run, runOk } from "../../../kit/exec.ts";
import { folderBytes } from "../../../kit/folder-bytes.ts";
import { syncFileSystem } from "../../../kit/sync-disk.ts";
import type { Trash } from "../steps/trash.ts";

/**
 * Installed folders shared by all projects, `<key>/{content,bytes}`. A key covers everything its install depended on, and no code but the
 * package manager's took part, so a project gets what it would have installed itself. Builds work on copies.
 */
export type InstallStore = Awaited<ReturnType<typeof openInstallStore>>;

export interface InstallStoreOptions {
  readonly folder: string;
  readonly trash: Trash;
  /** Largest size of the store on disk. Default 5 GiB. */
  readonly mostBytes?: number;
}

const defaultMostBytes = 5 * 1024 ** 3;

export async function openInstallStore(options: InstallStoreOptions) {
  const { folder: root, trash, mostBytes = defaultMostBytes } = options;
  await mkdir(root, { recursive: true, mode: 0o700 });
  return {
    /** Copies the folder with this key to `target` for a user; returns false if there is none. */
    async copy(key: string, target: string, uid: number) {
      const now = new Date();
      const isThere = await utimes(join(root, key), now, now).then(
        () => true,
        () => false,
      );
      if (!isThere) return false;
      if (await copyFor(uid, join(root, key, "content"), target)) return true;
      await trash.discard(target);
      return false;
    },
    /** Takes over a folder that no process writes to any more, once it is synced. Removes the least recently used ones of a store that is too large. */
    async keep(key: string, folder: string) {
      const making = `${folder}.kept`;
      await mkdir(making, { mode: 0o700 });
      await rename(folder, join(making, "content"));
      await giveAll(process.geteuid?.() ?? 0, making);
      await writeFile(join(making, "bytes"), String(await folderBytes(making)));
      await syncFileSystem(making);
      // If another build was first, this folder is deleted with its build.
      await rename(making, join(root, key)).catch(() => {});
      for (const old of await tooMany(root, mostBytes)) await trash.discard(join(root, old));
    },
  };
}

export function installStoreKey(inputs: readonly unknown[]): string {
  return hash("sha256", JSON.stringify([process.arch, ...inputs]));
}

/** Copies a folder for a user; returns false if that fails, as when the source is removed meanwhile. */
export async function copyFor(uid: number, source: string, target: string): Promise<boolean> {
  const args = ["--archive", "--no-preserve=ownership", "--reflink=auto", "--no-target-directory", source, target];
  const copied = await run({ file: "cp", args });
  if (copied.exitCode === 0) await giveAll(uid, target);
  return copied.exitCode === 0;
}

/** Gives a folder and its content to a user. Does nothing for an ordinary user, who owns the files already. */
async function giveAll(uid: number, folder: string): Promise<void> {
  if (process.geteuid?.() !== 0) return;
  await runOk({ file: "chown", args: ["--recursive", "--no-dereference", `${uid}:${uid}`, folder] });
}

/** Returns the least recently used keys that exceed the store's size. */
async function tooMany(root: string, mostBytes: number): Promise<string[]> {
  const kept = await Promise.all(
    (await readdir(root)).map(async (key) => ({
      key,
      usedAtMs: (await stat(join(root, key))).mtimeMs,
      bytes: Number(await readFile(join(root, key, "bytes"), "utf8")),
    })),
  );
  let bytes = 0;
  return kept
    .toSorted((a, b) => b.usedAtMs - a.usedAtMs)
    .filter((each) => (bytes += each.bytes) > mostBytes)
    .map(({ key }) => key);
}
