import { setProgress, type Progress } from "../../features/backups/backups.ts";
import type { Db } from "../../store/database.ts";
import type { Lease } from "../../store/leases.ts";

/** Stores the progress of an operation, at most twice a second. */
export interface BackupProgress {
  /** Records a change; the next periodic write stores it. */
  tell(change: Partial<Progress>): void;
  /** Stores a new phase at once. */
  enter(phase: Progress["phase"]): Promise<void>;
  /** Stops; nothing is written after this resolves. */
  close(): Promise<void>;
}

const pauseMs = 500;

export function createBackupProgress(db: Db, lease: Lease): BackupProgress {
  let now: Progress = { phase: "waiting", bytes_done: 0, tables_done: 0, tables_total: null };
  let written = now;
  let writing: Promise<void> = Promise.resolve();
  // Progress is informational: a failed write must not fail the operation.
  const write = () => {
    if (written === now) return writing;
    const next = (written = now);
    writing = writing.then(() => setProgress(db, lease, next)).catch(() => {});
    return writing;
  };
  const timer = setInterval(() => void write(), pauseMs);
  return {
    tell(change) {
      now = { ...now, ...change };
    },
    async enter(phase) {
      now = { ...now, phase };
      await write();
    },
    async close() {
      clearInterval(timer);
      await writing;
    },
  };
}
