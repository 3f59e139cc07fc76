import { randomBytes } from "node:crypto";
import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { attempt } from "../../kit/attempt.ts";
import { diskFault } from "../../kit/disk-fault.ts";
import { identify, isAlive, type ProcessIdentity } from "../../kit/processes.ts";
import { until } from "../../kit/until.ts";

/**
 * Runs `work` while no other process and no other call in this one holds the same lock file. Takes over a lock whose holder has died;
 * throws when the lock is not free within `waitMs`. On a read-only disk there can be no lock and no server can be started, so `work`
 * runs without one: it can still stop what is running.
 */
export async function withFolderLock<T>(path: string, work: () => Promise<T>, waitMs = 120_000): Promise<T> {
  const held = await until(() => take(path), { timeoutMs: waitMs });
  if (held === undefined)
    throw new Error(`another process has been working in this folder for ${waitMs / 60_000} minutes: ${path}`);
  try {
    return await work();
  } finally {
    if (held === "locked") rmSync(path, { force: true });
  }
}

// Links a complete file instead of creating the lock, so that the lock and its holder's identity appear together.
function take(path: string): "locked" | "unlockable" | undefined {
  const mine = `${path}.${process.pid}.${randomBytes(4).toString("hex")}`;
  try {
    writeFileSync(mine, JSON.stringify(identify(process.pid)), { mode: 0o600 });
  } catch (error) {
    if (diskFault(error) === "read_only") return "unlockable";
    throw error;
  }
  try {
    linkSync(mine, path);
    return "locked";
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    dropIfAbandoned(path);
    return undefined;
  } finally {
    rmSync(mine, { force: true });
  }
}

// Renames the lock before deleting it: if two processes see the same abandoned lock, only one can move it away.
function dropIfAbandoned(path: string): void {
  const aside = `${path}.${process.pid}.abandoned`;
  try {
    if (!isAbandoned(readFileSync(path, "utf8"))) return;
    renameSync(path, aside);
    if (isAbandoned(readFileSync(aside, "utf8"))) rmSync(aside);
    else renameSync(aside, path);
  } catch {
    // Another process was faster; the next attempt checks again.
  }
}

function isAbandoned(text: string): boolean {
  return attempt(() => !isAlive(JSON.parse(text) as ProcessIdentity), true);
}
