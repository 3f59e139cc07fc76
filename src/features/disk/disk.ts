import { sql } from "kysely";
import type { Db, Tx } from "../../store/database.ts";
import type { HandlerPlatform, RefusalText } from "../context.ts";
import type { ProjectKey } from "../projects/projects.ts";
import { selectDiskUse } from "./queries.ts";
import { databaseOverLimit, type DiskLimits } from "./rules.ts";

export {
  averageUse,
  measureAllSoon,
  saveAccess,
  saveDatabaseSize,
  saveMeasured,
  servingDeployment,
  storageOf,
  takeDueProject,
  undecidedProjects,
  type Undecided,
} from "./queries.ts";
export {
  imagesOverLimit,
  limitInShortage,
  nextDatabaseState,
  nextStorageAccess,
  type DatabaseDiskState,
  type DiskLimits,
  type StorageAccess,
} from "./rules.ts";

/** Returns a project's disk use and its limits: its own, or else the installation's. */
export async function diskUseOf(db: Db | Tx, project: ProjectKey, defaults: DiskLimits) {
  const { use, own } = await selectDiskUse(db, project);
  const limits: DiskLimits = {
    storage_bytes: own.storage_limit_bytes ?? defaults.storage_bytes,
    database_bytes: own.database_limit_bytes ?? defaults.database_bytes,
    images_bytes: own.images_limit_bytes ?? defaults.images_bytes,
    backups_bytes: own.backups_limit_bytes ?? defaults.backups_bytes,
  };
  return { use, limits };
}

interface Refusing<Code> {
  readonly tx: Db | Tx;
  readonly project: { readonly key: ProjectKey };
  readonly platform: Pick<HandlerPlatform, "ports" | "settings">;
  readonly fail: (code: Code, more?: RefusalText) => never;
}

/**
 * Refuses a new build while the disk of the data folder, or the builder's disk, is short of space. Images over the project's limit are not
 * checked here: the build clears the project's caches first and checks them itself.
 */
export async function requireRoomForBuild({
  platform,
  fail,
}: Pick<Refusing<"storage_full">, "platform" | "fail">): Promise<void> {
  const { dataDisk, builder } = platform.ports;
  if ((await dataDisk.observe()).is_short || (await builder.isShortOfSpace())) return fail("storage_full");
}

/** Refuses to add data to a database that is over its limit. */
export async function requireRoomInDatabase({
  tx,
  project,
  platform,
  fail,
}: Refusing<"disk_limit_reached">): Promise<void> {
  const { use, limits } = await diskUseOf(tx, project.key, platform.settings.disk);
  if (use.database_access !== "open")
    return fail("disk_limit_reached", databaseOverLimit(use.database_bytes ?? 0, limits));
}

const mostKept = 3;

export async function insertSnapshot(
  db: Db,
  snapshot: ProjectKey & { readonly id: string; readonly deployment_id: string },
): Promise<void> {
  await db
    .insertInto("storage_snapshot")
    .values({ ...snapshot, status: "copying" })
    .execute();
}

/** Returns the ids of the newest complete snapshots that stay when another one is added. */
export async function keptSnapshots(db: Db, { org_id, project_id }: ProjectKey): Promise<string[]> {
  const rows = await db
    .selectFrom("storage_snapshot")
    .select("id")
    .where(({ and }) => and({ org_id, project_id, status: "complete" }))
    .orderBy("id", "desc")
    .limit(mostKept - 1)
    .execute();
  return rows.map(({ id }) => id);
}

/** Records a finished snapshot, and that all others but the kept ones are gone. `bytes` is null when there were no files. */
export async function completeSnapshot(
  db: Db,
  { org_id, project_id, id }: ProjectKey & { readonly id: string },
  bytes: number | null,
  kept: readonly string[],
): Promise<void> {
  await sql`update storage_snapshot set
      status = case when id = ${id} and ${bytes}::bigint is not null then 'complete' else 'deleted' end,
      bytes = case when id = ${id} then ${bytes}::bigint else bytes end,
      finished_at = coalesce(finished_at, now())
    where org_id = ${org_id} and project_id = ${project_id} and id <> all(${[...kept]}::text[]) and status <> 'deleted'`.execute(
    db,
  );
}
