import type { Readable } from "node:stream";

/** Stores large files durably: complete under their key, or not at all. Keys are paths of letters, digits and `-_./`. */
export interface Storage {
  /**
   * Stores the stream's content and resolves with its size once it is durable. Replaces an earlier file under the key. Rejects with the
   * stream's own error or with `StorageFull`; then nothing is stored under the key.
   */
  put(key: string, content: Readable, signal?: AbortSignal): Promise<{ readonly size_bytes: number }>;
  /** Opens the file as a stream, which may fail with `ArchiveDamaged`. Rejects with `StorageMissing` when there is none. */
  open(key: string, signal?: AbortSignal): Promise<Readable>;
  /** Returns where the file is on this machine; a storage without this method keeps its files elsewhere, or not as they were given. */
  path?(key: string): string;
  /** Deletes the file for good, along with remains of an interrupted `put` under this key. Idempotent. */
  delete(key: string, signal?: AbortSignal): Promise<void>;
  /** Removes remains of interrupted `put` calls, except under busy keys, and resolves with their number. */
  sweep(isBusy: (key: string) => Promise<boolean>, signal?: AbortSignal): Promise<number>;
  /** Returns the free space in bytes; null when the storage has no limit. */
  free(): Promise<number | null>;
}

/** All configured storages, by name. New files go to the default one; existing files stay where they are. */
export interface Storages {
  readonly standard: string;
  readonly named: Readonly<Record<string, Storage>>;
  /** Returns the content as an age file that only the recovery key opens. */
  encrypt(content: Readable): Promise<Readable>;
}

export class StorageFull extends Error {
  constructor(cause?: unknown) {
    super("there is no room left in the storage", { cause });
    this.name = "StorageFull";
  }
}

/** A file is missing, or differs from what was stored. */
export class ArchiveDamaged extends Error {
  constructor(what: string, cause?: unknown) {
    super(what, { cause });
    this.name = "ArchiveDamaged";
  }
}

export class StorageMissing extends Error {
  constructor(key: string) {
    super(`the storage has no file ${key}`);
    this.name = "StorageMissing";
  }
}
