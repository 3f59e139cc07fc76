import { mkdir, readFile, readdir, rename, stat, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { runOk } from "../../../kit/exec.ts";
import { syncFileSystem } from "../../../kit/sync-disk.ts";
import { parseJson } from "../../../kit/parse-json.ts";
import type { HashedFolder } from "../release/hash-tree.ts";
import type { Spares } from "./spares.ts";
import type { Trash } from "./trash.ts";

/**
 * Kept results of installs, `<project cache>/installs/<key>/{full,production,spare,shared}`. A project's commands can never write to them:
 * builds work on a copy, and files linked into a release are never mounted writable again.
 */
export interface KeptInstalls {
  /** Copies the kept folder to `target` for a build that may change it; returns false if nothing is kept. */
  copyFull(key: string, target: string): Promise<boolean>;
  /** Keeps such a copy, in which no file has changed, for the next `copyFull`, which then need not create thousands of files again. */
  takeBack(key: string, copy: string): Promise<void>;
  /** Hard-links the kept production folder to `target`, which must not be written to afterwards; returns false if nothing is kept. */
  linkProduction(key: string, target: string): Promise<boolean>;
  /** Returns the digest of the kept production folder; null if unknown. */
  hashed(key: string): Promise<HashedFolder | null>;
  /** Hard-links a folder as it is. The returned function, called after the build, keeps it, or drops it if a file was written to meanwhile. */
  keep(key: string, variant: "full" | "production", source: string): Promise<() => Promise<void>>;
  keepHashed(key: string, hashed: HashedFolder): Promise<void>;
  /** Records that this key's install is in the store shared by projects, from which `copyFull` then copies it. */
  keepShared(key: string, storeKey: string): Promise<void>;
}

// The install in use and the previous one, for when a dependency is added and removed again.
const keptKeys = 2;

export interface KeptInstallsOptions {
  readonly projectCacheDir: string;
  readonly spares: Spares;
  readonly trash: Trash;
  /** Copies a shared install to `target`; returns false if there is none with that key. */
  readonly copyShared?: (storeKey: string, target: string) => Promise<boolean>;
  /** Aborts work that the build waits for. */
  readonly signal: AbortSignal;
  /** Aborts work after the build. */
  readonly upkeep: AbortSignal;
}

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
      // A file that a power cut truncated is none; the folder is then hashed again.
      return parseJson<HashedFolder>(text) ?? null;
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

/** Returns whether a file was written to. Compares mtime, not ctime: ctime changes whenever a link to the file is added or removed. */
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
