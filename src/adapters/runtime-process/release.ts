import { existsSync, readFileSync, renameSync, rmSync } from "node:fs";
import { join, resolve } from "node:path";
import type { ProjectImage } from "../../ports/runtime.ts";
import { manifestName, treeName, type ReleaseManifest } from "../../ports/release-folder.ts";

/** Opens the release of an image. Throws when the release is missing or unreadable. */
export function openRelease(releasesDir: string, dataDir: string, image: { project_id: string; image_ref: string }) {
  const folder = join(releasesDir, image.project_id, digestOf(image.image_ref));
  const file = join(folder, manifestName);
  if (!existsSync(file)) throw new Error(`there is no release ${image.image_ref} of ${image.project_id}`);
  const manifest = JSON.parse(readFileSync(file, "utf8")) as ReleaseManifest;
  if (manifest.format !== 1) throw new Error(`the release ${image.image_ref} has a format this version does not know`);
  const binds = manifest.binds.map(({ source, target }) => ({
    source: resolve(dataDir, source),
    target,
    writable: false,
  }));
  return { manifest, treeDir: join(folder, treeName), binds };
}

/** Deletes the project's release. Idempotent; a crash in between leaves nothing that looks like a release. */
export function removeRelease(releasesDir: string, image: ProjectImage): void {
  const name = digestOf(image.image_ref);
  const folder = join(releasesDir, image.project_id, name);
  const doomed = join(releasesDir, image.project_id, `.removed-${name}`);
  if (existsSync(folder)) renameSync(folder, doomed);
  rmSync(doomed, { recursive: true, force: true });
}

function digestOf(imageRef: string): string {
  const found = /^sha256:([0-9a-f]{64})$/.exec(imageRef);
  if (!found) throw new Error(`not an image of the process runtime: ${imageRef}`);
  return found[1] as string;
}
