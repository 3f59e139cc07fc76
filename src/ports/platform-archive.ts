import type { Readable } from "node:stream";

/** Packs what the platform itself consists of: its database, keys, settings and repositories. Storages hold its projects' backups. */
export interface PlatformArchive {
  /**
   * Streams all of it, encrypted so that only the recovery key opens it. The database is as it was at `taken_at`; the repositories hold at
   * least what it names. A repository that fails is left out and named; rejects when anything else fails, or the disk has no room.
   */
  pack(projectIds: readonly string[], signal: AbortSignal): Promise<PackedPlatform>;
}

export interface PackedPlatform {
  readonly content: Readable;
  readonly taken_at: Date;
  /** The public half of the recovery key, an age recipient. */
  readonly recipient: string;
  /** Sentences about the repositories that could not be packed. */
  readonly left_out: readonly string[];
}
