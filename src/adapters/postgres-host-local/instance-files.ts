import { randomBytes } from "node:crypto";
import { chmodSync, chownSync, existsSync, mkdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import type { ProcessIdentity } from "../../kit/processes.ts";
import { readJson, readTextOrEmpty, replaceFile } from "../../kit/whole-file.ts";

/** Returns the paths in one instance's folder. Only `data` belongs to the server's own user. */
export function instanceFiles(dir: string) {
  return {
    data: join(dir, "data"),
    config: join(dir, "config"),
    log: join(dir, "postgresql.log"),
    secret: join(dir, "superuser-secret"),
    mark: join(dir, "process-mark"),
    running: join(dir, "running.json"),
    initialPassword: join(dir, "initial-password"),
    lock: join(dir, "lock"),
  };
}

/** Creates the folder if missing, and sets exactly this owner and mode. For `uid` null the current user keeps it. */
export function ensureFolder(path: string, mode: number, uid: number | null = null): void {
  mkdirSync(path, { recursive: true, mode });
  const now = statSync(path);
  if (uid !== null && (now.uid !== uid || now.gid !== uid)) chownSync(path, uid, uid);
  if ((now.mode & 0o7777) !== mode) chmodSync(path, mode);
}

/** Replaces a file, unless it has this text, so that a crash, also of the machine, leaves the old or the new text. */
export function writeWhole(path: string, text: string, mode = 0o600): void {
  if (readTextOrEmpty(path) === text) return;
  replaceFile(path, text, { mode, flush: true });
}

/** Returns the secret in `path`, created on first use: 256 random bits that only the platform can read. */
export function ensureSecret(path: string): string {
  if (!existsSync(path)) writeWhole(path, randomBytes(32).toString("base64url"));
  return readFileSync(path, "utf8");
}

/** Returns the process that was last seen as this instance's postmaster. */
export function readRunning(dir: string): ProcessIdentity | undefined {
  return readJson(instanceFiles(dir).running);
}
