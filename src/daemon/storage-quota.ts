import { mkdirSync, readFileSync } from "node:fs";
import { openProjectQuota } from "../kit/project-quota.ts";
import type { Config } from "./config.ts";
import { findProgram } from "./setup/find-program.ts";

/** What the file system of the storage folders can limit by itself. */
export function storageQuota({ isRoot }: Config, storageDir: string) {
  mkdirSync(storageDir, { recursive: true, mode: 0o700 });
  const program = isRoot ? findProgram("xfs_quota", "") : null;
  return openProjectQuota(program, storageDir, readFileSync("/proc/self/mountinfo", "utf8"));
}
