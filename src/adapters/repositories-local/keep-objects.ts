import { link, mkdir, readdir } from "node:fs/promises";
import { openFolder, type OpenFolder } from "../../kit/open-folder.ts";

/**
 * Hard-links the objects of a quarantine (a folder in `objects`) into the repository's own store, so that even 256 MiB need no copy.
 * Follows git's own order for migrating them: a pack's index comes last, because it makes the pack visible. When the push ends, git finds
 * the identical names and accepts them. `own` gives a new folder to git's user. Idempotent.
 */
export async function keepObjects(
  repositoryDir: string,
  quarantine: string,
  own: (path: string) => Promise<void>,
): Promise<void> {
  await using objects = await openFolder(repositoryDir, "objects");
  await using from = objects && (await openFolder(objects.path, quarantine));
  if (objects === undefined || from === undefined) return;
  for (const name of await readdir(from.path))
    if (/^(?:pack|[0-9a-f]{2})$/.test(name)) await keepFolder({ from, objects, name, own });
}

interface Keeping {
  readonly from: OpenFolder;
  readonly objects: OpenFolder;
  readonly name: string;
  readonly own: (path: string) => Promise<void>;
}

async function keepFolder({ from, objects, name, own }: Keeping): Promise<void> {
  const target = `${objects.path}/${name}`;
  if (await isNew(mkdir(target))) await own(target);
  await using source = await openFolder(from.path, name);
  await using kept = await openFolder(objects.path, name);
  if (source === undefined || kept === undefined) return;
  const files = (await readdir(source.path, { withFileTypes: true })).filter((entry) => entry.isFile());
  const objectNames = files.map((entry) => entry.name).filter(isObject);
  for (const file of objectNames.sort(byVisibility))
    await isNew(link(`${source.path}/${file}`, `${kept.path}/${file}`));
}

// `.keep` files and temporary files belong to the push, not to the repository.
function isObject(name: string): boolean {
  return /^pack-[0-9a-f]+\.(?:pack|rev|idx)$/.test(name) || /^[0-9a-f]{38,62}$/.test(name);
}

function byVisibility(a: string, b: string): number {
  return Number(a.endsWith(".idx")) - Number(b.endsWith(".idx"));
}

/** Returns true if the operation created something, false if it already existed. */
async function isNew(making: Promise<void>): Promise<boolean> {
  try {
    await making;
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  }
}
