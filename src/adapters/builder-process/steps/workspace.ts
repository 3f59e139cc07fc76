import { lchown, mkdir } from "node:fs/promises";
import { join, relative } from "node:path";
import type { Trash } from "./trash.ts";

/** The folders of one build. `app`, `tmp`, `home` belong to the build's user; the rest is the platform's. */
export interface Workspace {
  readonly root: string;
  /** The source, later the release's content; mounted at /app. */
  readonly app: string;
  readonly tmp: string;
  readonly home: string;
  /** Package managers' own caches, kept from build to build; mounted at /cache. */
  readonly cache: string;
  /** The user that its commands run as. */
  readonly uid: number;
  /** Who that is on this machine: the same as root, oneself otherwise. */
  readonly hostUid: number;
}

export interface WorkspacePlaces {
  readonly buildsDir: string;
  readonly projectCacheDir: string;
  readonly buildId: string;
  readonly uid: number;
  readonly hostUid: number;
}

/** Makes the folders of a build anew; what an earlier attempt of the same build left is removed. */
export async function makeWorkspace(places: WorkspacePlaces, trash: Trash): Promise<Workspace> {
  const root = join(places.buildsDir, places.buildId);
  await trash.discard(root);
  await mkdir(root, { recursive: true, mode: 0o755 });
  const cache = join(places.projectCacheDir, "shared");
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

export const isBelowTmp = (target: string): boolean => target.startsWith("/tmp/");

/** Makes what shall be mounted at a path below /tmp a place there, before any command of the project has run. */
export async function makeBelowTmp({ tmp, hostUid }: Workspace, target: string): Promise<void> {
  let folder = tmp;
  for (const name of relative("/tmp", target).split("/")) await makeFolder((folder = join(folder, name)), hostUid);
}

async function makeFolder(folder: string, uid: number): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o755 });
  await giveTo(folder, uid);
}

/** Makes a user the owner of one folder. Where Berth runs as an ordinary user, builds run as the same user and own their folders already. */
export async function giveTo(folder: string, uid: number): Promise<void> {
  if (uid !== process.getuid?.()) await lchown(folder, uid, uid);
}

/** The application's folder in the sandbox, the same as in the runtime's, so that absolute paths in it stay true. */
export const home = "/app";
