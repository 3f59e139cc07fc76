import { copyFileSync, statSync, truncateSync } from "node:fs";

const limitBytes = 4 * 1024 * 1024;

/** Empties a log above 4 MiB and keeps what it held as `<path>.1`. Only for logs that are appended to: these can be cut under their writer. */
export function capLog(path: string): void {
  try {
    if (statSync(path).size <= limitBytes) return;
    try {
      copyFileSync(path, `${path}.1`);
    } finally {
      truncateSync(path);
    }
  } catch {
    // It is not there yet, or the disk is full: nothing that is worth a failure.
  }
}
