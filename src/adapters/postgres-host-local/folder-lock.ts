import { randomBytes } from "node:crypto";
import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { diskFault } from "../../kit/disk-fault.ts";
import { identify, isAlive, type ProcessIdentity } from "../../kit/processes.ts";
import { until } from "../../kit/until.ts";

const waitMs = 120_000;

/**
 * Does `work` while no other process (and no other call in this one) does work under the same lock file.
 * A lock whose holder died is taken over. Throws when it cannot be had for two minutes. A disk that accepts no writes holds no lock, and
 * nothing can be started on it: work goes on without one there, so that what runs can still be stopped.
 */
export async function withFolderLock<T>(path: string, work: () => Promise<T>): Promise<T> {
  const held = await until(() => take(path), { timeoutMs: waitMs });
  if (held === undefined) throw new Error(`another process has been working in this folder for two minutes: ${path}`);
  try {
    return await work();
  } finally {
    if (held === "locked") rmSync(path, { force: true });
  }
}

// Linked, not created: the lock appears together with its holder's name.
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

// Renamed before it is deleted: of two who see the same abandoned lock, one only gets it out of the way.
function dropIfAbandoned(path: string): void {
  const aside = `${path}.${process.pid}.abandoned`;
  try {
    if (!isAbandoned(readFileSync(path, "utf8"))) return;
    renameSync(path, aside);
    if (isAbandoned(readFileSync(aside, "utf8"))) rmSync(aside);
    else renameSync(aside, path);
  } catch {
    // Someone else was faster; the next attempt sees how it stands.
  }
}

function isAbandoned(text: string): boolean {
  try {
    return !isAlive(JSON.parse(text) as ProcessIdentity);
  } catch {
    return true;
  }
}
