import { copyFileSync, statSync, truncateSync } from "node:fs";

const limitBytes = 4 * 1024 * 1024;

/** Truncates a log above 4 MiB after copying it to `<path>.1`. Only for logs in append mode, whose writer may be running. */
export function capLog(path: string): void {
  try {
    if (statSync(path).size <= limitBytes) return;
    try {
      copyFileSync(path, `${path}.1`);
    } finally {
      truncateSync(path);
    }
  } catch {
    // The log does not exist yet, or the disk is full: not worth failing for.
  }
}
