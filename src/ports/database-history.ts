import type { Readable } from "node:stream";
import type { DatabaseSpec, DumpOptions, DumpSummary } from "./postgres-host.ts";

/**
 * The past of one instance: copies of its whole folder ("bases") and its write-ahead log from then on. Both together give any moment since
 * the first base. Positions in the log are numbers of bytes, as PostgreSQL's `pg_lsn`.
 */
export interface DatabaseHistory {
  /**
   * Makes the instance keep its log for `release`, until that exceeds 512 MiB, and resolves with how far the log is. Opens no connection
   * while nothing is written. Throws `HistoryNeedsRestart`, or an error when the server is not running.
   */
  position(spec: DatabaseSpec): Promise<LogPosition>;
  /** Reads the segment that contains the byte before `end`, from its start up to `end`, which must be durable. */
  readSegment(spec: DatabaseSpec, log: LogShape, end: number): Promise<Buffer>;
  /** Lets the instance remove its log before this position. Idempotent. */
  release(spec: DatabaseSpec, before: number): Promise<void>;
  /** Keeps the log no longer. Idempotent; a server that is not running is left alone. */
  end(spec: DatabaseSpec): Promise<void>;
  /** Copies the running instance's folder; `consume` receives a tar archive compressed by zstd. Writers are not blocked. */
  copy(spec: DatabaseSpec, options: CopyOptions): Promise<CopySummary>;
  /**
   * Recovers a copy in a server of its own, beside the running one and without its settings, up to the last transaction that was committed
   * at `until`, or to the log's end. Replaces an earlier one of the same instance. Rejects with `DatabaseWorkFailed`.
   */
  recover(spec: DatabaseSpec, from: RecoverySource): Promise<RecoveredInstance>;
  /** Removes what `recover` created. Idempotent. */
  discardRecovered(id: string): Promise<void>;
}

/** Which log an instance writes. A log with another `system` or `timeline` does not continue this one. */
export interface LogShape {
  readonly system: string;
  readonly timeline: number;
  readonly segment_bytes: number;
}

export interface LogPosition extends LogShape {
  /** Everything before is durable. */
  readonly end: number;
  /** The log from here on is kept. Later than what was released last: the part between is lost. */
  readonly kept_from: number;
  /** Every transaction that was acknowledged before this moment of the server's clock is before `end`. */
  readonly at: Date;
}

export interface CopyOptions {
  readonly consume: (archive: Readable) => Promise<void>;
  readonly signal: AbortSignal;
}

/** A copy is consistent once the log between the two positions is applied to it. */
export interface CopySummary extends LogShape {
  readonly start: number;
  readonly stop: number;
  /** The moment of the server's clock from which on it can show any moment. */
  readonly at: Date;
  /** The file that PostgreSQL must find in the copy. */
  readonly backup_label: string;
}

export interface RecoverySource {
  readonly archive: Readable;
  readonly backup_label: string;
  readonly segment_bytes: number;
  /** All segments from the copy's start on, by their names; the last may be incomplete. */
  readonly segments: AsyncIterable<{ readonly name: string; readonly content: Buffer }>;
  readonly until: Date | null;
  readonly signal: AbortSignal;
}

/** A read-only look at what was. */
export interface RecoveredInstance {
  /** When the last transaction in it was committed; null if its log has none. */
  readonly last_commit_at: Date | null;
  listDatabases(): Promise<readonly string[]>;
  dump(database: string, options: DumpOptions): Promise<DumpSummary>;
}

/** The server was started before Berth kept the log; it keeps it after its next start. */
export class HistoryNeedsRestart extends Error {
  constructor() {
    super("The database must be restarted once before its history can be kept.");
    this.name = "HistoryNeedsRestart";
  }
}

/** Returns the name of the segment that contains the byte at this position: timeline and number, as PostgreSQL names the file. */
export function segmentName({ timeline, segment_bytes }: Omit<LogShape, "system">, position: number): string {
  const number = Math.floor(position / segment_bytes);
  const perFile = 2 ** 32 / segment_bytes;
  const hex = (value: number) => value.toString(16).toUpperCase().padStart(8, "0");
  return `${hex(timeline)}${hex(Math.floor(number / perFile))}${hex(number % perFile)}`;
}
