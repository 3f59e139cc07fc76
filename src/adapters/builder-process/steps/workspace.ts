import { lchown, mkdir } from "node:fs/promises";
import { join, relative } from "node:path";
import type { Trash } from "./trash.ts";

/** The folders of one build. `app`, `tmp`, `home` and `cache` belong to the build's user, `root` to the platform. */
export interface Workspace {
  readonly root: string;
  /** First the source, later the release's content; mounted at /app. */
  readonly app: string;
  readonly tmp: string;
  readonly home: string;
  /** Package managers' caches, kept between builds; mounted at /cache. */
  readonly cache: string;
  readonly uid: number;
  /** That uid on this machine: the same if Berth is root, else Berth's own. */
  readonly hostUid: number;
}

export interface WorkspacePlaces {
  readonly buildsDir: string;
  readonly projectCacheDir: string;
  readonly buildId: string;
}

/** Creates the folders of a build; discards what an earlier attempt of the same build left. */
export async function makeWorkspace(
  places: WorkspacePlaces & Pick<Workspace, "uid" | "hostUid">,
  trash: Trash,
): Promise<Workspace> {
  const root = rootOf(places);
  await trash.discard(root);
  await mkdir(root, { recursive: true, mode: 0o755 });
  const cache = cacheOf(places);
  const workspace = {
    root,
    app: join(root, "app"),
    tmp: join(root, "tmp"),
    home: join(root, "home"),
    cache,
    uid: places.uid,
    hostUid: places.hostUid,
  };
  for (const folder of [workspace.app, workspace.tmp, workspace.home, cache]) await makeFolder(folder, places.hostUid);
  return workspace;
}

/** The folders on the disk that a build writes to. */
export const foldersOf = (places: WorkspacePlaces): readonly string[] => [rootOf(places), cacheOf(places)];

const rootOf = ({ buildsDir, buildId }: WorkspacePlaces): string => join(buildsDir, buildId);
const cacheOf = ({ projectCacheDir }: WorkspacePlaces): string => join(projectCacheDir, "shared");

export const isBelowTmp = (target: string): boolean => target.startsWith("/tmp/");

/** Creates the mount point for a path below /tmp, before any command of the project has run. */
export async function makeBelowTmp({ tmp, hostUid }: Workspace, target: string): Promise<void> {
  let folder = tmp;
  for (const name of relative("/tmp", target).split("/")) await makeFolder((folder = join(folder, name)), hostUid);
}

async function makeFolder(folder: string, uid: number): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o755 });
  await giveTo(folder, uid);
}

/** Gives one folder to a user. If Berth is an ordinary user, builds run as the same user and already own their folders. */
export async function giveTo(folder: string, uid: number): Promise<void> {
  if (uid !== process.getuid?.()) await lchown(folder, uid, uid);
}

/** The application's folder in the sandboxes of builds and of the runtime; the same in both, so that absolute paths stay valid. */
export const home = "/app";
