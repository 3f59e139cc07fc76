import type { ArchiveFile, Problem, Progress, TakenOperation } from "../../features/backups/backups.ts";
import { DatabaseWorkFailed } from "../../ports/postgres-host.ts";
import { StorageFull, type Storage } from "../../ports/storage.ts";
import type { Tx } from "../../store/database.ts";
import type { Lease } from "../../store/leases.ts";
import type { Platform } from "../platform.ts";

export interface Work {
  readonly platform: Platform;
  readonly operation: TakenOperation;
  readonly lease: Lease;
  readonly progress: BackupProgress;
  readonly signal: AbortSignal;
}

/** The result of an operation, and what the activity shows of it; `write` runs in the transaction that ends the operation. */
export type End = { readonly problem: Problem | null; readonly write?: (tx: Tx) => Promise<void>; detail?: object };

/** How the operations on one kind of content are done. */
export interface Job {
  perform(): Promise<End>;
  /** Removes what an unfinished attempt has created. Idempotent. */
  cleanUp(): Promise<void>;
  /** Runs in the transaction that ends the operation, however it ends. */
  readonly atEnd?: (tx: Tx) => Promise<void>;
}

/** Stores the progress of an operation, at most twice a second. */
export interface BackupProgress {
  /** Records a change; the next periodic write stores it. */
  tell(change: Partial<Progress>): void;
  /** Stores a new phase at once. */
  enter(phase: Progress["phase"]): Promise<void>;
  /** Stops; nothing is written after this resolves. */
  close(): Promise<void>;
}

const spareBytes = 32 * 1024 * 1024;

/** Throws `StorageFull` when the storage has no room for this many bytes. */
export async function requireRoom(storage: Storage, bytes: number): Promise<void> {
  const free = await storage.free();
  if (free !== null && free < bytes + spareBytes) throw new StorageFull();
}

export function archiveOf({ platform, operation, progress, signal }: Work): ArchiveFile {
  const storage = platform.ports.storages.named[operation.storage ?? ""];
  if (storage === undefined)
    throw new DatabaseWorkFailed(
      "missing",
      `The backup is in the storage "${operation.storage}", which is not configured.`,
    );
  const onBytes = (bytes_done: number) => progress.tell({ bytes_done });
  return { storage, key: operation.storage_key ?? "", sha256: operation.sha256 ?? "", signal, onBytes };
}
