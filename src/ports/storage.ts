import type { Readable } from "node:stream";

/**
 * Keeps large files for good. A file appears under its key whole or not at all, and is durable by then.
 * Keys are relative paths of letters, digits and `-_./`, made by the platform alone.
 */
export interface Storage {
  /**
   * Stores what the stream brings; resolves with its size once it is durable. Rejects with the stream's own error, or with
   * `StorageFull`; then nothing is under the key. An earlier file under the key is replaced.
   */
  put(key: string, content: Readable, signal?: AbortSignal): Promise<{ readonly size_bytes: number }>;
  /** The file as a stream. Rejects with `StorageMissing` when there is none. */
  open(key: string, signal?: AbortSignal): Promise<Readable>;
  /** Deletes the file for good, and what an interrupted `put` under this key left behind. Idempotent. */
  delete(key: string): Promise<void>;
  /**
   * Removes what interrupted calls of `put` left behind, unless its key is busy: that is asked after the file was seen, so a key
   * that is called busy before its `put` begins is safe. Resolves with how many there were.
   */
  sweep(isBusy: (key: string) => Promise<boolean>): Promise<number>;
  /** How much more fits; null when there is no such bound. */
  free(): Promise<number | null>;
}

/** All storages that are configured, by name. New files go to the standard one; old ones stay where they are. */
export interface Storages {
  readonly standard: string;
  readonly named: Readonly<Record<string, Storage>>;
}

/** There is no room left. */
export class StorageFull extends Error {
  constructor(cause?: unknown) {
    super("there is no room left in the storage", { cause });
    this.name = "StorageFull";
  }
}

/** There is no file under the key. */
export class StorageMissing extends Error {
  constructor(key: string) {
    super(`the storage has no file ${key}`);
    this.name = "StorageMissing";
  }
}
