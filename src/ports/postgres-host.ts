import type { Result } from "../contract/routes.ts";
import type { Readable } from "node:stream";
import type { ServerAddress } from "../kit/server-address.ts";
import type { ServerTls } from "../kit/server-tls.ts";

/**
 * Runs one PostgreSQL instance per project, under its own unprivileged uid. Instances outlive the control plane. Every operation on objects
 * that the project's owner created runs as the project's role, never as a superuser.
 */
export interface PostgresHost {
  /**
   * Creates and starts the instance if necessary, with the hardened role and database of `spec`. Idempotent at every step. Resets all
   * settings that the owner made for its role, everywhere in the instance. Resolves when the database accepts connections as the role;
   * otherwise throws with a sentence for the operator. Aborting `signal` stops only the waiting: a starting server continues, and the next
   * call picks it up.
   */
  ensure(spec: DatabaseSpec, signal?: AbortSignal): Promise<DatabaseEndpoint>;
  /** Returns what is running, without changing anything. */
  observe(spec: DatabaseSpec): Promise<DatabaseObservation>;
  /** Returns whether the instance's server process exists. Very cheap: it opens no connection. */
  hasProcess(id: string): boolean;
  /** Returns whether the server runs a program or library that an update has replaced: `stop` and `ensure` change to the new one. */
  isReplaced(id: string): Promise<boolean>;
  /** Returns how connections to the instance's server are secured; null if they need not be. Holds no secret. */
  tlsOf(id: string): ServerTls | null;
  /** Returns the past of the instance; null where the server is the operator's own, whose log Berth does not see. */
  history(id: string): DatabaseHistory | null;
  /** Stops the instance's processes and keeps its data. Idempotent. */
  stop(id: string): Promise<void>;
  /** Stops the instance and deletes its data for good. Idempotent. */
  destroy(id: string): Promise<void>;
  /** Lists the ids of all instances that have data on this machine. */
  list(): Promise<readonly string[]>;
  /** Creates an additional, empty database for a restore or verification, owned by the platform, usable by the role. Idempotent. */
  createDatabase(spec: DatabaseSpec, name: string): Promise<void>;
  /**
   * Makes one of the project's databases read-only for sessions that don't ask for more, and ends the sessions that it has; or lets them
   * write again. When it resolves, no write of an earlier session can still be committed. Idempotent. `ensure` makes the live one writable.
   */
  setWritable(spec: DatabaseSpec, name: string, isWritable: boolean): Promise<void>;
  /** Terminates the database's connections and drops it. Idempotent. */
  dropDatabase(spec: DatabaseSpec, name: string): Promise<void>;
  /** Terminates one session of the project's role by its process id, whatever it is running. Leaves sessions of other roles alone. Idempotent. */
  endSession(spec: DatabaseSpec, processId: number): Promise<void>;
  /**
   * Limits the memory of one session by its process id: a statement that needs more fails with `out_of_memory`, or its session ends, never
   * the server. Resolves with a function that ends the watch and returns whether the session was ended. A session that is gone is no error.
   */
  limitSession(spec: DatabaseSpec, processId: number): Promise<() => Promise<boolean>>;
  /**
   * Returns the login of a role that may read everything the project's role may read in this database, but can neither write nor terminate
   * the application's sessions. Idempotent. Rejects with `DatabaseWorkFailed` when the database does not exist.
   */
  readerLogin(spec: DatabaseSpec, database: string): Promise<RoleLogin>;
  /**
   * Returns the statements of the project's role that took the most time in this database, as `pg_stat_statements` normalizes them: without
   * their values. Null where the server does not collect them. Reads only what the server counts, in a database that projects can't enter.
   */
  statements(spec: DatabaseSpec, query: StatementsQuery): Promise<readonly StatementUse[] | null>;
  /** Creates a role that acts as the project's role, for one interactive session. The caller chooses its name and password. */
  openSessionRole(spec: DatabaseSpec, login: RoleLogin): Promise<void>;
  /** Terminates the role's connections, reassigns what it owns to the project's role and drops it. Idempotent. */
  dropSessionRole(spec: DatabaseSpec, roleName: string): Promise<void>;
  /** Lists all databases of the instance except PostgreSQL's own. */
  listDatabases(spec: DatabaseSpec): Promise<readonly string[]>;
  /**
   * Dumps the database as a pg_dump archive (custom format, compressed only if `isCompressed`) and counts the rows of its tables in the
   * same snapshot, without blocking writers. Runs as a role without superuser rights that reads what the project's role may read and
   * bypasses row security. Rejects with `DatabaseWorkFailed`, or with the error of `consume`.
   */
  dump(spec: DatabaseSpec, options: DumpOptions): Promise<DumpSummary>;
  /**
   * Restores an archive into an empty additional database, as the project's role and in one transaction: the archive can make the server do
   * only what the project's owner could do anyway. Rejects with `DatabaseWorkFailed`, or with the stream's error.
   */
  restore(spec: DatabaseSpec, name: string, options: RestoreOptions): Promise<void>;
  /** Streams an archive's SQL text, without owners and grants. Failures are reported as the stream's error. */
  archiveAsText(spec: DatabaseSpec, options: RestoreOptions): Promise<Readable>;
  /** Counts the rows of a database's tables, as `dump` does. */
  countRows(spec: DatabaseSpec, name: string, options: CountOptions): Promise<readonly TableCount[]>;
}

/** A role of an instance other than the project's own. Holds a secret. */
export type RoleLogin = Pick<DatabaseSpec, "role_name" | "password">;

export interface StatementsQuery {
  readonly database: string;
  readonly sort: "total" | "mean" | "most";
}

export type StatementUse = Result<"data.statements">["statements"][number];

export interface DumpOptions extends CountOptions {
  /** Whether the archive comes compressed by zstd. */
  readonly isCompressed: boolean;
  /** Consumes the archive while pg_dump writes it; the dump is complete when this resolves. */
  readonly consume: (archive: Readable) => Promise<void>;
}

export interface RestoreOptions {
  readonly archive: Readable;
  readonly signal: AbortSignal;
}

export interface CountOptions {
  readonly signal: AbortSignal;
  /** Called after each counted table. */
  readonly onCounted?: (progress: { readonly counted: number; readonly tables: number }) => void;
}

export interface DumpSummary {
  readonly counts: readonly TableCount[];
  /** The server's version, such as `15.14`. */
  readonly engine_version: string;
}

/** A table that stores rows itself: ordinary tables and partitions, but none created by an extension. */
export interface TableCount {
  /** Schema and name, quoted for SQL: `public.orders`, `app."Order"`. */
  readonly table: string;
  readonly rows: number;
}

/** Why a dump, a restore or a count failed. The message is a sentence for the project's owner. */
export class DatabaseWorkFailed extends Error {
  /** `full`: no disk space · `away`: the server is not running · `refused`: the database's own error · `missing`: no program for it. */
  readonly reason: "full" | "away" | "refused" | "missing";
  constructor(reason: DatabaseWorkFailed["reason"], message: string, cause?: unknown) {
    super(message, { cause });
    this.name = "DatabaseWorkFailed";
    this.reason = reason;
  }
}

export interface DatabaseSpec {
  /** The database row's id, `dbs_…`. */
  readonly id: string;
  readonly project_id: string;
  /** Small, unique and never reused; the uid and the port derive from it. */
  readonly project_number: number;
  readonly role_name: string;
  readonly database_name: string;
  /** Secret. Sent to the server only in a file or a protocol message, never in argv. */
  readonly password: string;
  /** Rights of the project's role. `read_only`: a session may still ask to write, to delete. Losing rights terminates its sessions. */
  readonly access: "open" | "read_only" | "closed";
  /** Rows say that the database was ready before: `ensure` throws `PartMissing` instead of creating it. */
  readonly was_ready?: boolean;
}

/** Where the platform itself reaches the server. The address that an application uses comes from its runtime. */
export interface DatabaseEndpoint extends ServerAddress {
  readonly engine_version: string;
}

export type DatabaseObservation =
  | { readonly state: "absent" | "stopped" }
  | {
      readonly state: "running";
      readonly endpoint: DatabaseEndpoint;
      /** Size of all databases of the instance, including temporary files of its sessions. */
      readonly size_bytes: number;
      /** Connections to the project's own database. */
      readonly connections: number;
      /** Whether the role's password, settings and rights are still as `ensure` set them; its owner can change some of them. */
      readonly intact: boolean;
      /** A table is being rewritten (`VACUUM FULL`), which uses extra disk space until it finishes. */
      readonly compacting: boolean;
    };

/**
 * The past of one instance: copies of its whole folder ("bases") and its write-ahead log from then on. Both together give any moment since
 * the first base. Positions in the log are numbers of bytes, as PostgreSQL's `pg_lsn`.
 */
export interface DatabaseHistory {
  /**
   * Makes the instance keep its log for `release`, until that exceeds 512 MiB, and resolves with how far the log is. Opens no connection
   * while nothing is written, and needs no server then. Throws `HistoryNeedsRestart`, or an error when the server is not running.
   */
  position(of: Pick<DatabaseSpec, "id">): Promise<LogPosition>;
  /** Commits a transaction that changes nothing: recovery to a moment that no commit follows applies the log twice. */
  commit(spec: DatabaseSpec): Promise<void>;
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
  /**
   * Copies the running instance, with everything that is committed when the copying ends, into a server of its own beside it: the same
   * databases and roles, but the project's role has `password`. Writers are not blocked. Replaces an earlier one. Rejects with
   * `DatabaseWorkFailed`, and with `CopyIsFull` before anything is copied.
   */
  clone(spec: DatabaseSpec, options: CloneOptions): Promise<ClonedInstance>;
  /** Removes what `clone` created. Idempotent. */
  discardClone(id: string): Promise<void>;
  /**
   * Copies the running instance, or one of its past, into another instance, which nobody can log in to until it is masked and on disk.
   * Replaces what an interrupted attempt left. Rejects as `clone` does, with `MaskFailed`, or with the error of `announce`.
   */
  branch(spec: DatabaseSpec, target: DatabaseSpec, options: BranchOptions): Promise<void>;
}

/** `clone`: the file system shares the blocks of both until one changes. `copy`: all bytes are copied. */
export type CopyMethod = "clone" | "copy";

export interface BranchOptions {
  /** What to recover; null: what is committed now. */
  readonly from: RecoverySource | null;
  /** Called before anything is copied. */
  readonly announce: (method: CopyMethod) => Promise<void>;
  /** SQL that runs in the copy as the project's role before anybody can log in. */
  readonly mask: { readonly sql: string; readonly timeoutMs: number } | null;
  readonly signal: AbortSignal;
}

/** The mask's SQL failed, or took too long. The message is a sentence for the project's owner. */
export class MaskFailed extends Error {}

export interface CloneOptions {
  /** Whether all bytes may be copied where the file system cannot share them. */
  readonly mayCopy: boolean;
  readonly password: string;
  readonly signal: AbortSignal;
}

/** The file system cannot share the blocks of the instance's files with a copy, so that all of them would be copied. */
export class CopyIsFull extends Error {}

export interface ClonedInstance {
  readonly server: ServerAddress;
  readonly method: CopyMethod;
  /** Returns the tables of a database that store rows themselves, with exact numbers of rows. */
  tables(database: string, signal: AbortSignal): Promise<readonly TableState[]>;
  /** Samples locks on tables until `end`, which returns those that forbid at least writes. */
  watch(database: string): Promise<{ end(): Promise<readonly HeldLock[]> }>;
}

export interface TableState extends TableCount {
  readonly oid: number;
  /** The file that holds its rows: another one after the table was rewritten. */
  readonly file: number;
  /** Its columns by their numbers, which are never used again. */
  readonly columns: Readonly<Record<string, string>>;
  /** Their types by the same numbers, with `not null` where it holds. */
  readonly types: Readonly<Record<string, string>>;
  /** Its indexes, constraints and triggers, such as `index orders_pkey`, each with its state, such as `valid`. */
  readonly parts: Readonly<Record<string, string>>;
  /** Rows inserted, updated and deleted since the copy was made, rolled back ones included. */
  readonly inserted: number;
  readonly updated: number;
  readonly deleted: number;
}

export interface HeldLock {
  readonly table: string;
  /** `reads`: not even reading is possible meanwhile. */
  readonly blocks: "reads" | "writes";
  readonly seconds: number;
  /** What ran longest while it was held, as the session sent it; null: nothing was seen to run. */
  readonly statement: string | null;
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
  /** The copy, which fails at its end if it differs from what was stored. */
  readonly archive: AsyncIterable<Buffer>;
  /** Where the same bytes are in a file of this machine, if they are: programs read them there. */
  readonly path?: string | undefined;
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
