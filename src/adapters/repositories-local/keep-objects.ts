import { link, mkdir, readdir } from "node:fs/promises";
import { dirname, join } from "node:path";

/**
 * Gives the objects of a quarantine a second name in the repository's own store: hard links, so that 256 MiB cost nothing, in
 * the order in which git itself migrates them — a pack's index last, because the index is what makes the pack visible.
 * git finds identical names when the push ends and accepts them. `own` gives a new folder to git's user. Idempotent.
 */
export async function keepObjects(
  quarantineDir: string,
  objectsDir: string,
  own: (path: string) => Promise<void>,
): Promise<void> {
  const files = (await readdir(quarantineDir, { recursive: true, withFileTypes: true }))
    .filter((entry) => entry.isFile() && isObject(entry.name))
    .map((entry) => join(entry.parentPath, entry.name).slice(quarantineDir.length + 1));
  for (const file of files.sort(byVisibility)) await linkOnce(join(quarantineDir, file), join(objectsDir, file), own);
}

// `.keep` files and temporary files belong to the push, not to the repository.
function isObject(name: string): boolean {
  return /^pack-[0-9a-f]+\.(?:pack|rev|idx)$/.test(name) || /^[0-9a-f]{38,62}$/.test(name);
}

function byVisibility(a: string, b: string): number {
  return Number(a.endsWith(".idx")) - Number(b.endsWith(".idx"));
}

async function linkOnce(from: string, to: string, own: (path: string) => Promise<void>): Promise<void> {
  try {
    if ((await mkdir(dirname(to), { recursive: true })) !== undefined) await own(dirname(to));
    await link(from, to);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  }
}
