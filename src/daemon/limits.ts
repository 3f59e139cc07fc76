import type { ApiLimits } from "../contract/limits.ts";
import type { DiskLimits } from "../features/disk/disk.ts";
import type { HttpLimits } from "../http/http-limits.ts";
import { mibToBytes, type Config } from "./config.ts";

/** Returns the limits of requests at the control port. */
export function httpLimitsOf(config: Config): Partial<HttpLimits> {
  return {
    bodyBytes: config.bodyKib * 1024,
    headersTimeoutMs: config.headerSeconds * 1000,
    requestTimeoutMs: config.requestSeconds * 1000,
    readsPerMinute: config.readsPerMinute,
    writesPerMinute: config.writesPerMinute,
  };
}

/** Returns how much disk one project may use, unless the operator set limits for it. */
export function diskLimitsOf(config: Config): DiskLimits {
  return {
    storage_bytes: mibToBytes(config.storageMib),
    database_bytes: mibToBytes(config.databaseDiskMib),
    images_bytes: mibToBytes(config.imagesMib),
    backups_bytes: mibToBytes(config.backupsMib),
  };
}

type PushLimits = Pick<ApiLimits, "pack_bytes" | "tree_entries" | "tree_bytes" | "build_log_bytes">;

/** Returns the limits of pushes and builds. */
export function pushLimitsOf(config: Config): PushLimits {
  return {
    pack_bytes: mibToBytes(config.packMib),
    tree_entries: config.treeEntries,
    tree_bytes: mibToBytes(config.treeMib),
    build_log_bytes: mibToBytes(config.buildLogMib),
  };
}
