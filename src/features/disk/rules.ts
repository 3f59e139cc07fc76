import { bytesText } from "../../kit/bytes-text.ts";
import type { FolderEntry } from "../../kit/look-into-folder.ts";

/** How much disk space one project may use. */
export interface DiskLimits {
  readonly storage_bytes: number;
  readonly database_bytes: number;
  /** Images of deployments, and caches that builds keep for the next build. */
  readonly images_bytes: number;
  /** Backups on the local disk. Over it the oldest are deleted. */
  readonly backups_bytes: number;
}

export type StorageAccess = "open" | "read_only";
export type DatabaseAccess = "open" | "read_only" | "closed";

/** The access to a project's database because of its disk use. */
export interface DatabaseDiskState {
  readonly access: DatabaseAccess;
  /** A read-only database that grows beyond this size is closed. */
  readonly ceiling_bytes: number | null;
  /** How often it was closed since it was last within its limit. */
  readonly closings: number;
  readonly reopens_at: string | null;
}

export interface DatabaseUse {
  readonly bytes: number;
  readonly limitBytes: number;
  readonly compacting: boolean;
}

// A project may write again only below this share of its limit, so that its access does not flip back and forth at the limit.
const reopenShare = 0.95;
const mib = 1024 ** 2;
const closedMs = 5 * 60_000;
const longestClosedMs = 24 * 3_600_000;

/**
 * Returns the next state of a database. Over its limit the role is read-only by default; a session may switch to writing in order to
 * delete. Such a session could also insert, so a database that keeps growing is closed for five minutes, then ten, twenty and so on.
 * Between closings it may grow only a little, so deleting is always possible but filling the disk is not.
 */
export function nextDatabaseState(use: DatabaseUse, before: DatabaseDiskState, now: Date): DatabaseDiskState {
  const { bytes, limitBytes } = use;
  if (before.access === "open") return bytes > limitBytes ? readOnly(use, 0) : open;
  if (bytes <= limitBytes * reopenShare) return open;
  if (before.access === "closed") {
    if (Date.parse(before.reopens_at ?? "") > now.getTime()) return before;
    return readOnly(use, before.closings);
  }
  // VACUUM FULL writes a new copy of a table before it frees the old one.
  const ceiling = (before.ceiling_bytes ?? limitBytes) + (use.compacting ? limitBytes : 0);
  return bytes > ceiling ? closed(before.closings + 1, now) : before;
}

export function nextStorageAccess(bytes: number, limitBytes: number, before: StorageAccess): StorageAccess {
  if (bytes > limitBytes) return "read_only";
  return bytes <= limitBytes * reopenShare ? "open" : before;
}

/** Returns the limit while the whole disk is short of space: projects over the average may not write until there is space again. */
export function limitInShortage(limitBytes: number, averageBytes: number): number {
  return Math.min(limitBytes, Math.max(64 * mib, averageBytes - 1));
}

const open: DatabaseDiskState = { access: "open", ceiling_bytes: null, closings: 0, reopens_at: null };

function readOnly({ bytes, limitBytes }: DatabaseUse, closings: number): DatabaseDiskState {
  const room = Math.min(limitBytes / 10, 256 * mib);
  return { access: "read_only", ceiling_bytes: Math.ceil(bytes + room), closings, reopens_at: null };
}

function closed(closings: number, now: Date): DatabaseDiskState {
  const pauseMs = Math.min(closedMs * 2 ** (closings - 1), longestClosedMs);
  const reopens_at = new Date(now.getTime() + pauseMs).toISOString();
  return { access: "closed", ceiling_bytes: null, closings, reopens_at };
}

/** The refusal of a build because of the project's images. */
export function imagesOverLimit(bytes: number, { images_bytes }: DiskLimits) {
  return {
    error: `The project's repository, images and build caches use ${gibText(bytes)} of ${gibText(images_bytes)}.`,
    hint: "Make the application smaller (fewer dependencies, no data in the repository), delete branches and tags (`git push --delete`), or ask the platform's operator for a higher limit.",
  };
}

/** The refusal to add data to a database over its limit. */
export function databaseOverLimit(bytes: number, { database_bytes }: DiskLimits) {
  return {
    error: `The database uses ${gibText(bytes)} of ${gibText(database_bytes)} and is now read-only.`,
    hint: "Run `SET default_transaction_read_only = off` in a session, delete rows or drop tables, then run `VACUUM FULL`. Below 95 % of the limit the database accepts writes again.",
  };
}

/** The refusal to add a file to a storage folder that has no room for it. */
export function storageOverLimit(usedBytes: number, moreBytes: number, { storage_bytes }: DiskLimits) {
  return {
    error: `The storage folder uses ${gibText(usedBytes)} of ${gibText(storage_bytes)}, which leaves no room for ${gibText(moreBytes)} more.`,
  };
}

/** Says what a write has found at its path. */
export function whatIsThere(path: string, { kind, size_bytes, modified_at }: FolderEntry): string {
  const size = kind === "file" ? ` of ${bytesText(size_bytes)}` : "";
  return `${path} is there, a ${kind}${size} changed at ${modified_at}. Nothing was changed`;
}

function gibText(bytes: number): string {
  return bytes >= 1024 ** 3 ? `${(bytes / 1024 ** 3).toFixed(1)} GiB` : `${Math.ceil(bytes / mib)} MiB`;
}
