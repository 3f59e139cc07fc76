import { createHash } from "node:crypto";
import { access, constants, copyFile, mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { manifestName, treeName, type ReleaseManifest } from "../../../ports/release-folder.ts";
import { besideApp, siteCommand, siteServerFile } from "../../../building/site-server.ts";
import type { Start } from "../../../detection/plan.ts";
import { syncFileSystem, syncFolder } from "../../../kit/sync-disk.ts";
import type { Trash } from "../steps/trash.ts";
import type { HashedFolder, Hashing, TreeLimits } from "./hash-tree.ts";

export interface Publishing {
  /** The finished content, which is moved into the release. */
  readonly app: string;
  /** An empty or missing folder on the same disk, in which the release is assembled. */
  readonly folder: string;
  readonly releasesDir: string;
  readonly manifest: ReleaseManifest;
  /** Known digests of folders directly below `app`. */
  readonly known: ReadonlyMap<string, HashedFolder>;
  readonly limits: TreeLimits;
  readonly hashing: Hashing;
  readonly signal: AbortSignal;
}

/** Moves a release to its place, named by its content, once it is on disk: after a power cut it is complete or absent. */
export async function publish(publishing: Publishing) {
  const { folder, releasesDir, manifest, known, limits, hashing, signal } = publishing;
  await mkdir(folder, { recursive: true, mode: 0o755 });
  await rename(publishing.app, join(folder, treeName));
  const text = `${JSON.stringify(manifest, null, 2)}\n`;
  await writeFile(join(folder, manifestName), text, { mode: 0o444 });
  // Writes the files to disk while they are hashed.
  const synced = syncFileSystem(folder, signal);
  const [hashed] = await Promise.all([hashing.hash({ root: join(folder, treeName), known, limits }), synced]);
  const hex = nameOf(hashed, text);
  const place = join(releasesDir, hex);
  await mkdir(releasesDir, { recursive: true, mode: 0o755 });
  if (!(await moved(folder, place)) && !(await isWhole(publishing, place, hex))) {
    // An earlier power cut damaged the existing release. It moves to the build's folders and is deleted with them; what runs from it can
    // use it until then.
    await rename(place, `${folder}-damaged`);
    await rename(folder, place);
  }
  await syncFolder(releasesDir);
  return { imageRef: `sha256:${hex}` /** The content's new path. */, tree: join(place, treeName), hashed };
}

function nameOf({ digest }: HashedFolder, manifest: string): string {
  return createHash("sha256").update(`${digest}\n${manifest}`).digest("hex");
}

/** Returns false if the place is taken. */
export async function moved(folder: string, place: string): Promise<boolean> {
  try {
    await rename(folder, place);
    return true;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== "ENOTEMPTY" && code !== "EEXIST") throw error;
    return false;
  }
}

async function isWhole({ hashing, limits, signal }: Publishing, place: string, hex: string): Promise<boolean> {
  try {
    const hashed = await hashing.hash({ root: join(place, treeName), known: new Map(), limits });
    return nameOf(hashed, await readFile(join(place, manifestName), "utf8")) === hex;
  } catch {
    signal.throwIfAborted();
    return false;
  }
}

/** Returns whether a release can start: its manifest is readable, and the toolchains that it mounts exist. */
export async function hasItsTools(release: string): Promise<boolean> {
  try {
    const { binds } = JSON.parse(await readFile(join(release, manifestName), "utf8")) as ReleaseManifest;
    await Promise.all(binds.map(({ source }) => access(resolve(release, "../../..", source))));
    return true;
  } catch {
    return false;
  }
}

/** Reduces an application to the folder that is served and its server. Returns the release's new content folder. */
export async function makeSite(app: string, site: string, folder: string): Promise<string> {
  await mkdir(site, { recursive: true, mode: 0o755 });
  await rename(folder === "." ? app : join(app, folder), join(site, "site"));
  await copyFile(siteServerFile, join(site, "static-server.mjs"));
  return site;
}

/** Adds the server to an application kept whole for its release command; returns the web command. A link of that name is removed first. */
export async function addSiteServer(
  app: string,
  start: Extract<Start, { how: "static" }>,
  trash: Trash,
): Promise<string> {
  await trash.discard(join(app, besideApp));
  await copyFile(siteServerFile, join(app, besideApp), constants.COPYFILE_EXCL);
  return siteCommand(start, besideApp);
}
