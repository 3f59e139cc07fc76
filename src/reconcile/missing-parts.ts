import { partsOnDisk, type Finding } from "../features/status/status.ts";
import { mapWithConcurrency } from "../kit/map-with-concurrency.ts";
import { missingRepository, missingStorage, type PartMissing } from "../kit/part-missing.ts";
import { StorageMissing } from "../ports/storage.ts";
import type { Platform } from "./platform.ts";

type Project = Awaited<ReturnType<typeof partsOnDisk>>[number];

const maxConcurrency = 8;

/** Finds what rows say exists and the data folder lacks: repositories, storage folders, databases, images and backups of living projects. */
export async function missingParts(
  platform: Platform,
  options: { readonly withBackups: boolean },
): Promise<readonly Finding[]> {
  const found: Finding[] = [];
  await mapWithConcurrency(await partsOnDisk(platform.db), maxConcurrency, async (project) => {
    found.push(...(await missingOf(platform, project, options)));
  });
  return found;
}

async function missingOf(
  { ports, wakeups, db }: Platform,
  project: Project,
  { withBackups }: { readonly withBackups: boolean },
): Promise<Finding[]> {
  const { id, number, subject, database, image, backup } = project;
  const owner = { project_id: id, project_number: number };
  const found: Finding[] = [];
  const fail = (part: string, { summary, hint }: Pick<PartMissing, "summary" | "hint">) =>
    found.push({ subject: `${subject} ${part}`, status: "fail", detail: summary, hint });
  if (project.has_commits && !(await ports.repositories.exists(id))) fail("repository", missingRepository(id));
  if (project.has_stored_files && !(await ports.runtime.hasStorage(owner))) fail("storage", missingStorage(id));
  if (database !== null) fail("database", { summary: database[0], hint: database[1] });
  if (image !== null && !(await ports.builder.images(id, "runnable")).includes(image.ref)) {
    await wakeups.send(db, "images", id);
    const summary = `The image of commit ${image.commit.slice(0, 8)}, which should serve, is missing.`;
    if (image.rebuild === "failed")
      fail("image", { summary, hint: "Its build failed again: `berth builds log` shows why." });
    else
      found.push({
        subject: `${subject} image`,
        status: "warn",
        detail: `${summary} Berth builds it again.`,
        hint: null,
      });
  }
  if (withBackups && backup !== null && !(await hasBackup(ports.storages.named[backup.storage], backup.key)))
    fail("backup", {
      summary: `The file of its newest backup, ${backup.id}, is missing.`,
      hint: "Restore the folder `backups` from a copy, or create a new backup with `berth backups create`.",
    });
  return found;
}

/** Counts a store that does not answer as having the file: other checks report the store. */
async function hasBackup(
  store: Platform["ports"]["storages"]["named"][string] | undefined,
  key: string,
): Promise<boolean> {
  try {
    (await store?.open(key))?.destroy();
    return true;
  } catch (error) {
    return !(error instanceof StorageMissing);
  }
}
