import { mkdir, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { isPlain } from "./workspace.ts";

// What tools keep between builds to be faster, in the application's own folder. None of it belongs into a release.
const folders = [".next/cache", "node_modules/.cache", "node_modules/.vite", "node_modules/.astro", ".angular/cache", ".parcel-cache", ".turbo"];

/** Moves the kept caches of build tools into the application's folder, where their parents are there. */
export async function restoreBuildCaches(projectCacheDir: string, app: string): Promise<void> {
  for (const folder of folders) {
    const parent = dirname(folder);
    const target = join(app, folder);
    if (parent === ".next") await mkdir(join(app, parent), { mode: 0o777 }).catch(() => {});
    if (parent !== "." && !isPlain(app, parent, "folder")) continue;
    await rename(join(projectCacheDir, "build", folder.replaceAll("/", "+")), target).catch(() => {});
  }
}

/** Takes the caches of build tools out of the application's folder and keeps them for the next build. */
export async function keepBuildCaches(projectCacheDir: string, app: string): Promise<void> {
  for (const folder of folders) {
    if (!isPlain(app, folder, "folder")) continue;
    const target = join(projectCacheDir, "build", folder.replaceAll("/", "+"));
    await mkdir(dirname(target), { recursive: true, mode: 0o700 });
    await rm(target, { recursive: true, force: true });
    await rename(join(app, folder), target).catch(() => {});
  }
}
