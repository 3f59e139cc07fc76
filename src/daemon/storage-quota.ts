import { mkdirSync, readFileSync } from "node:fs";
import { openProjectQuota } from "../kit/project-quota.ts";
import type { Config } from "./config.ts";
import { findProgram } from "./setup/find-program.ts";

/** Returns the quotas of the storage folders' file system; null if it has none or Berth can't set them. */
export function storageQuota({ isRoot }: Config, storageDir: string) {
  mkdirSync(storageDir, { recursive: true, mode: 0o700 });
  const program = isRoot ? findProgram("xfs_quota", "") : null;
  return openProjectQuota(program, storageDir, readFileSync("/proc/self/mountinfo", "utf8"));
}
