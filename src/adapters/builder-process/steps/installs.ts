import { mkdir, readFile, readdir, rename, stat, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { runOk } from "../../../kit/exec.ts";
import { removeTree } from "./remove-tree.ts";
import { syncFileSystem } from "./sync-disk.ts";
import type { HashedFolder } from "../release/hash-tree.ts";
import type { Spares } from "./spares.ts";

/**
 * Kept results of installs, `<project cache>/installs/<key>/{full,production,spare}/`. Nothing kept is ever writable for a project's
 * command: builds work on a copy, and files linked into a release are never mounted writable again.
 */
export interface KeptInstalls {
  /** Brings a copy of the kept folder to `target` for a build that may change it; false when there is none. */
  copyFull(key: string, target: string): Promise<boolean>;
  /** Takes such a copy, in which no file has changed, for the next `copyFull`: thousands of files need not be made again. */
  takeBack(key: string, copy: string): Promise<void>;
  /** Links the kept production folder into `target`, which must not be written any more; false when there is none. */
  linkProduction(key: string, target: string): Promise<boolean>;
  /** What `hashTree` said of the kept production folder, or null when that is not known. */
  hashed(key: string): Promise<HashedFolder | null>;
  /**
   * Keeps a folder as it is now, once what it answers is called, for which nobody needs to wait: what is kept is on the disk before.
   * Files are linked. When one of them was written to meanwhile it is not kept, and from the next time on files of this key are copied.
   */
  keep(key: string, variant: "full" | "production", source: string): Promise<() => Promise<void>>;
  keepHashed(key: string, hashed: HashedFolder): Promise<void>;
}

// Two: the branch in use and the one before it, as when a dependency is added and taken back.
const keptKeys = 2;

/** The kept installs of one project. */
export function keptInstalls(projectCacheDir: string, spares: Spares): KeptInstalls {
  const root = join(projectCacheDir, "installs");
  const place = (key: string, variant: string) => join(root, key, variant);
  return {
    copyFull: async (key, target) => {
      if (!(await exists(place(key, "full")))) return false;
      await touch(join(root, key));
      const spare = spares.claim(place(key, "spare"));
      if (!spare || !(await moved(place(key, "spare"), target)))
        await copyTree(place(key, "full"), target, ["--reflink=auto"]);
      return true;
    },
    takeBack: async (key, copy) => {
      if (await moved(copy, place(key, "spare"))) await spares.add(place(key, "spare"));
    },
    linkProduction: async (key, target) => {
      if (!(await exists(place(key, "production")))) return false;
      await touch(join(root, key));
      await copyTree(place(key, "production"), target, ["--link"]);
      return true;
    },
    hashed: async (key) => {
      const text = await readFile(place(key, "production.json"), "utf8").catch(() => "");
      return parseHashed(text);
    },
    keep: async (key, variant, source) => {
      if (await exists(place(key, variant))) return async () => {};
      await mkdir(join(root, key), { recursive: true, mode: 0o700 });
      const making = place(key, `.making-${variant}`);
      const isWritten = place(key, "is-written-by-builds");
      await removeTree(making);
      await copyTree(source, making, [(await exists(isWritten)) ? "--reflink=auto" : "--link"]);
      const keptAtMs = Date.now() + 1;
      return async () => {
        if (await wasWritten(making, keptAtMs)) {
          await removeTree(making);
          return writeFile(isWritten, "");
        }
        await syncFileSystem(making);
        await rename(making, place(key, variant));
        await dropOld(root);
      };
    },
    keepHashed: async (key, hashed) => {
      if (await exists(place(key, "production")))
        await writeFile(place(key, "production.json"), JSON.stringify(hashed));
    },
  };
}

/** Null for what a power cut has cut off: it is read anew then. */
function parseHashed(text: string): HashedFolder | null {
  try {
    return JSON.parse(text) as HashedFolder;
  } catch {
    return null;
  }
}

/** By the time of the content: that of the link count changes with every link that comes and goes. */
async function wasWritten(folder: string, sinceMs: number): Promise<boolean> {
  const since = `@${(sinceMs / 1000).toFixed(3)}`;
  const found = await runOk({ file: "find", args: [folder, "-type", "f", "-newermt", since, "-print", "-quit"] });
  return found.stdout !== "";
}

async function copyTree(source: string, target: string, how: readonly string[]): Promise<void> {
  await runOk({ file: "cp", args: ["--archive", "--no-target-directory", ...how, source, target] });
}

async function moved(from: string, to: string): Promise<boolean> {
  return rename(from, to).then(
    () => true,
    () => false,
  );
}

async function exists(path: string): Promise<boolean> {
  return (await stat(path).catch(() => null)) !== null;
}

async function touch(folder: string): Promise<void> {
  const now = new Date();
  await utimes(folder, now, now);
}

async function dropOld(root: string): Promise<void> {
  const entries = await Promise.all(
    (await readdir(root)).map(async (key) => ({ key, at: (await stat(join(root, key))).mtimeMs })),
  );
  const old = entries.toSorted((a, b) => b.at - a.at).slice(keptKeys);
  for (const { key } of old) await removeTree(join(root, key));
}
