import { mkdir, readFile, readdir, rename, stat, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { runOk } from "../../../kit/exec.ts";
import { syncFileSystem } from "./sync-disk.ts";
import type { HashedFolder } from "../release/hash-tree.ts";
import type { Spares } from "./spares.ts";
import type { Trash } from "./trash.ts";

/**
 * Kept results of installs, `<project cache>/installs/<key>/{full,production,spare,shared}`. Nothing kept is ever writable for a project's
 * command: builds work on a copy, and files linked into a release are never mounted writable again.
 */
export interface KeptInstalls {
  /** Puts a copy of the kept folder at `target` for a build that may change it; false when there is none. */
  copyFull(key: string, target: string): Promise<boolean>;
  /** Takes such a copy, in which no file has changed, for the next `copyFull`: thousands of files need not be made again. */
  takeBack(key: string, copy: string): Promise<void>;
  /** Links the kept production folder into `target`, which must not be written any more; false when there is none. */
  linkProduction(key: string, target: string): Promise<boolean>;
  /** The digest of the kept production folder, or null when it is not known. */
  hashed(key: string): Promise<HashedFolder | null>;
  /**
   * Links a folder as it is now. The function that it returns keeps it, after the build: what is kept is on the disk before.
   * When a file was written to meanwhile the folder is not kept, and from the next time on files of this key are copied.
   */
  keep(key: string, variant: "full" | "production", source: string): Promise<() => Promise<void>>;
  keepHashed(key: string, hashed: HashedFolder): Promise<void>;
  /** Notes that the installed folder of this key is one that projects share: `copyFull` then takes it from there. */
  keepShared(key: string, storeKey: string): Promise<void>;
}

// Two: the branch in use and the one before it, as when a dependency is added and taken back.
const keptKeys = 2;

export interface KeptInstallsOptions {
  readonly projectCacheDir: string;
  readonly spares: Spares;
  readonly trash: Trash;
  /** Copies a folder that projects share to `target`; false when there is none of that key. */
  readonly copyShared?: (storeKey: string, target: string) => Promise<boolean>;
  /** Ends what the build waits for. */
  readonly signal: AbortSignal;
  /** Ends what happens after the build. */
  readonly upkeep: AbortSignal;
}

/** The kept installs of one project. */
export function keptInstalls(options: KeptInstallsOptions): KeptInstalls {
  const { projectCacheDir, spares, trash, copyShared, signal, upkeep } = options;
  const copyTree = (source: string, target: string, how: readonly string[], by = signal) =>
    runOk({ file: "cp", args: ["--archive", "--no-target-directory", ...how, source, target] }, { signal: by });
  const root = join(projectCacheDir, "installs");
  const place = (key: string, variant: string) => join(root, key, variant);
  return {
    copyFull: async (key, target) => {
      const storeKey = await readFile(place(key, "shared"), "utf8").catch(() => null);
      if (storeKey === null && !(await exists(place(key, "full")))) return false;
      await touch(join(root, key));
      if (spares.claim(place(key, "spare")) && (await moved(place(key, "spare"), target))) return true;
      if (storeKey !== null) return (await copyShared?.(storeKey, target)) ?? false;
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
      await trash.discard(making);
      const by = variant === "full" ? signal : upkeep;
      await copyTree(source, making, [(await exists(isWritten)) ? "--reflink=auto" : "--link"], by);
      const keptAtMs = Date.now() + 1;
      return async () => {
        if (await wasWritten(making, keptAtMs, upkeep)) {
          await trash.discard(making);
          return writeFile(isWritten, "");
        }
        await syncFileSystem(making, upkeep);
        await rename(making, place(key, variant));
        for (const old of await oldKeys(root)) await trash.discard(join(root, old));
      };
    },
    keepHashed: async (key, hashed) => {
      if (await exists(place(key, "production")))
        await writeFile(place(key, "production.json"), JSON.stringify(hashed));
    },
    keepShared: async (key, storeKey) => {
      await mkdir(join(root, key), { recursive: true, mode: 0o700 });
      await writeFile(place(key, "shared"), storeKey);
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
async function wasWritten(folder: string, sinceMs: number, signal: AbortSignal): Promise<boolean> {
  const since = `@${(sinceMs / 1000).toFixed(3)}`;
  const args = [folder, "-type", "f", "-newermt", since, "-print", "-quit"];
  const found = await runOk({ file: "find", args }, { signal });
  return found.stdout !== "";
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

async function oldKeys(root: string): Promise<string[]> {
  const entries = await Promise.all(
    (await readdir(root)).map(async (key) => ({ key, at: (await stat(join(root, key))).mtimeMs })),
  );
  return entries
    .toSorted((a, b) => b.at - a.at)
    .slice(keptKeys)
    .map(({ key }) => key);
}
