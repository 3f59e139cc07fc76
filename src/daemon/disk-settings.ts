import { wholeNumber } from "./settings.ts";

/** Settings of disk usage: limits, warnings and retention. */
export const diskSettings = {
  storageMib: wholeNumber(
    "BERTH_STORAGE_MIB",
    5120,
    [16, 1_073_741_824],
    "How large the storage folder of a project may get; over this limit the folder is read-only for the application.",
  ),
  databaseDiskMib: wholeNumber(
    "BERTH_DATABASE_DISK_MIB",
    10_240,
    [64, 1_073_741_824],
    "How much disk the database of a project may use; over this limit its role is read-only.",
  ),
  imagesMib: wholeNumber(
    "BERTH_IMAGES_MIB",
    5120,
    [64, 1_073_741_824],
    "How much disk the repository, images and build caches of a project may use; over this limit Berth refuses new builds.",
  ),
  backupsMib: wholeNumber(
    "BERTH_BACKUPS_MIB",
    20_480,
    [64, 1_073_741_824],
    "How much disk the backups of a project may use; over this limit the oldest are deleted, but never the newest and the newest verified one. Backups in S3 don't count.",
  ),
  diskFloorMib: wholeNumber(
    "BERTH_DISK_FLOOR_MIB",
    1024,
    [8, 1_048_576],
    "With less free space there are no builds, and the projects that take most may not write. Half of it is a reserve for the platform.",
  ),
  diskWarnPercent: wholeNumber(
    "BERTH_DISK_WARN_PERCENT",
    85,
    [1, 100],
    "The percentage of used disk space from which a check warns.",
  ),
  diskFullPercent: wholeNumber(
    "BERTH_DISK_FULL_PERCENT",
    95,
    [1, 100],
    "The percentage of used disk space from which the disk counts as full.",
  ),
  historyDays: wholeNumber(
    "BERTH_HISTORY_DAYS",
    400,
    [30, 36_500],
    "How long activity, ended approvals, builds with their logs and deployments are kept; each project keeps its newest 100 builds and deployments, and all that a rollback can use.",
  ),
} as const;
