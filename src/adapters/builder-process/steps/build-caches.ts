import { mkdir, rename, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Trash } from "./trash.ts";
import { isPlain } from "../../../building/is-plain.ts";
import { giveTo } from "./workspace.ts";

// Folders below the application in which tools keep caches between builds. None of them belongs in a release.
const folders = [
  ".next/cache",
  "node_modules/.cache",
  "node_modules/.vite",
  "node_modules/.astro",
  ".angular/cache",
  ".parcel-cache",
  ".turbo",
];

/** Moves the kept caches of build tools into the application's folder, which belongs to `uid`. */
export async function restoreBuildCaches(projectCacheDir: string, app: string, uid: number): Promise<void> {
  for (const folder of folders) {
    const kept = keptPlace(projectCacheDir, folder);
    if (!(await stat(kept).catch(() => null))) continue;
    const parent = dirname(folder);
    if (parent === ".next") await makeOwn(join(app, parent), uid);
    if (parent === "." || isPlain(app, parent, "folder")) await rename(kept, join(app, folder)).catch(() => {});
  }
}

async function makeOwn(folder: string, uid: number): Promise<void> {
  await mkdir(folder).catch(() => {});
  await giveTo(folder, uid);
}

function keptPlace(projectCacheDir: string, folder: string): string {
  return join(projectCacheDir, "build", folder.replaceAll("/", "+"));
}

/** Moves the caches of build tools out of the application's folder and keeps them for the next build. */
export async function keepBuildCaches(projectCacheDir: string, app: string, trash: Trash): Promise<void> {
  for (const folder of folders) {
    if (!isPlain(app, folder, "folder")) continue;
    const target = keptPlace(projectCacheDir, folder);
    await mkdir(dirname(target), { recursive: true, mode: 0o700 });
    await trash.discard(target);
    await rename(join(app, folder), target).catch(() => {});
  }
}
