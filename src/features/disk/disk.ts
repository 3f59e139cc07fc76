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
  whatIsThere,
  type DiskLimits,
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

/** Refuses a build while a disk is short of space. The project's limit is checked by the build, which clears the caches first. */
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
