import { wholeNumber } from "./settings.ts";

/** Settings of disk usage: limits, warnings and retention. */
export const diskSettings = {
  storageMib: wholeNumber(
    "BERTH_STORAGE_MIB",
    5120,
    [16, 1_073_741_824],
    "What the storage folder of a project may hold; beyond that the application sees it read-only.",
  ),
  databaseDiskMib: wholeNumber(
    "BERTH_DATABASE_DISK_MIB",
    10_240,
    [64, 1_073_741_824],
    "What the database of a project may take of the disk; beyond that its role is read-only.",
  ),
  imagesMib: wholeNumber(
    "BERTH_IMAGES_MIB",
    5120,
    [64, 1_073_741_824],
    "What the images and build caches of a project may take of the disk; beyond that it gets no new builds.",
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
    "The use of the disk from which a check warns.",
  ),
  diskFullPercent: wholeNumber(
    "BERTH_DISK_FULL_PERCENT",
    95,
    [1, 100],
    "The use of the disk from which it counts as full.",
  ),
  historyDays: wholeNumber(
    "BERTH_HISTORY_DAYS",
    400,
    [30, 36_500],
    "How long activity, ended approvals, builds with their logs and deployments are kept; each project keeps its newest 100 builds and deployments, and all that a rollback can use.",
  ),
} as const;
