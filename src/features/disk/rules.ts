/** What one project may take of the disk. */
export interface DiskLimits {
  readonly storage_bytes: number;
  readonly database_bytes: number;
  /** Images of deployments and what builds keep for the next build. */
  readonly images_bytes: number;
}

export type StorageAccess = "open" | "read_only";
export type DatabaseAccess = "open" | "read_only" | "closed";

/** How a project's database stands against its limit. */
export interface DatabaseDiskState {
  readonly access: DatabaseAccess;
  /** A read-only database that grows beyond this is closed. */
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

// Below this share of its limit a project is let write again, so that it does not go to and fro at the limit itself.
const reopenShare = 0.95;
const mib = 1024 ** 2;
const closedMs = 5 * 60_000;
const longestClosedMs = 24 * 3_600_000;

/**
 * The next state of a database. Over its limit the role is read-only by default: a session that asks to write may still delete.
 * It could also insert; a database that grows on is closed for five minutes, then ten, twenty and so on, and in between it may
 * grow by very little, so that deleting always stays possible and filling the disk does not.
 */
export function nextDatabaseState(use: DatabaseUse, before: DatabaseDiskState, now: Date): DatabaseDiskState {
  const { bytes, limitBytes } = use;
  if (before.access === "open") return bytes > limitBytes ? readOnly(use, 0) : open;
  if (bytes <= limitBytes * reopenShare) return open;
  if (before.access === "closed") {
    if (Date.parse(before.reopens_at ?? "") > now.getTime()) return before;
    return readOnly(use, before.closings);
  }
  // VACUUM FULL writes a table anew before it gives the old one back.
  const ceiling = (before.ceiling_bytes ?? limitBytes) + (use.compacting ? limitBytes : 0);
  return bytes > ceiling ? closed(before.closings + 1, now) : before;
}

/** The next access of a storage folder. */
export function nextStorageAccess(bytes: number, limitBytes: number, before: StorageAccess): StorageAccess {
  if (bytes > limitBytes) return "read_only";
  return bytes <= limitBytes * reopenShare ? "open" : before;
}

/**
 * The limit that holds while the whole disk is short of space: those who use more than the average may not write until there is
 * room again, and the others go on.
 */
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

/** Why a project gets no new build. */
export function imagesOverLimit(bytes: number, { images_bytes }: DiskLimits) {
  return {
    error: `The project's images and build caches take ${gibText(bytes)} of ${gibText(images_bytes)}.`,
    hint: "Make the application smaller (fewer dependencies, no data in the repository), or ask the platform's operator for a higher limit.",
  };
}

/** Why nothing may be added to a database. */
export function databaseOverLimit(bytes: number, { database_bytes }: DiskLimits) {
  return {
    error: `The database takes ${gibText(bytes)} of ${gibText(database_bytes)} and is read-only.`,
    hint: "Begin a session with `SET default_transaction_read_only = off`, delete rows or drop tables, then run `VACUUM FULL`; below 95 % of the limit everything may write again.",
  };
}

function gibText(bytes: number): string {
  return bytes >= 1024 ** 3 ? `${(bytes / 1024 ** 3).toFixed(1)} GiB` : `${Math.ceil(bytes / mib)} MiB`;
}
