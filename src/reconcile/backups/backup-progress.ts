import { setProgress, type Progress } from "../../features/backups/backups.ts";
import type { Db } from "../../store/database.ts";
import type { Lease } from "../../store/leases.ts";

/** How far an operation is, written down twice a second at most. */
export interface BackupProgress {
  /** Takes note of what changed. */
  tell(change: Partial<Progress>): void;
  /** Writes a new phase at once. */
  enter(phase: Progress["phase"]): Promise<void>;
  /** No more is written after this resolves. */
  close(): Promise<void>;
}

const pauseMs = 500;

export function createBackupProgress(db: Db, lease: Lease): BackupProgress {
  let now: Progress = { phase: "waiting", bytes_done: 0, tables_done: 0, tables_total: null };
  let written = now;
  let writing: Promise<void> = Promise.resolve();
  // Progress is for watching: that it could not be written down is no reason to fail.
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
