import { lstatSync } from "node:fs";
import { chown, mkdir, rm } from "node:fs/promises";
import { join } from "node:path";

/** The folders of one build. `app`, `tmp`, `home` belong to the build's user; the rest is the platform's. */
export interface Workspace {
  readonly root: string;
  /** The source, later the release's content; mounted at /app. */
  readonly app: string;
  readonly tmp: string;
  readonly home: string;
  /** Package managers' own caches, kept from build to build; mounted at /cache. */
  readonly cache: string;
  readonly uid: number | null;
}

export interface WorkspacePlaces {
  readonly buildsDir: string;
  readonly projectCacheDir: string;
  readonly buildId: string;
  /** Null when the platform is not root: everything then belongs to its own user. */
  readonly uid: number | null;
}

/** Makes the folders of a build anew; what an earlier attempt of the same build left is removed. */
export async function makeWorkspace(places: WorkspacePlaces): Promise<Workspace> {
  const root = join(places.buildsDir, places.buildId);
  await rm(root, { recursive: true, force: true });
  await mkdir(root, { recursive: true, mode: 0o755 });
  const cache = join(places.projectCacheDir, "shared");
  const workspace = { root, app: join(root, "app"), tmp: join(root, "tmp"), home: join(root, "home"), cache, uid: places.uid };
  for (const folder of [workspace.app, workspace.tmp, workspace.home, cache]) await makeFolder(folder, places.uid);
  return workspace;
}

async function makeFolder(folder: string, uid: number | null): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o755 });
  if (uid !== null) await chown(folder, uid, uid);
}

/** Whether a path below `root` exists with no link on the way: commands of the project may have put a link anywhere. */
export function isPlain(root: string, path: string, kind: "file" | "folder"): boolean {
  const parts = path.split("/").filter((part) => part !== "" && part !== ".");
  if (parts.includes("..")) return false;
  let current = root;
  for (const [index, part] of parts.entries()) {
    current = join(current, part);
    const stats = lstatSync(current, { throwIfNoEntry: false });
    const wantsFile = index === parts.length - 1 && kind === "file";
    if (!stats || (wantsFile ? !stats.isFile() : !stats.isDirectory())) return false;
  }
  return true;
}
