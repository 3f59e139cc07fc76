import type { Readable } from "node:stream";
import type { ServerAddress } from "../kit/server-address.ts";

/**
 * Runs one PostgreSQL instance per project, under an unprivileged uid of its own. Instances outlive the control plane.
 * Whatever touches what the project's owner made is done as the project's role, never as a superuser.
 */
export interface PostgresHost {
  /**
   * Makes the instance exist, run, and hold the role and database of `spec`, hardened. Idempotent at every step.
   * Resets whatever the owner set for its role, everywhere in the instance.
   * Resolves when the database accepts connections as the role. Throws with a sentence for the operator when it cannot.
   * An aborted signal ends the waiting with its reason; a server that is starting goes on, and the next call takes it up.
   */
  ensure(spec: DatabaseSpec, signal?: AbortSignal): Promise<DatabaseEndpoint>;
  /** What runs, without changing anything. */
  observe(spec: DatabaseSpec): Promise<DatabaseObservation>;
  /** Whether the instance's server has its process. Costs next to nothing: no connection is made. */
  hasProcess(id: string): boolean;
  /** Ends the instance's processes, keeps its data. Idempotent. */
  stop(id: string): Promise<void>;
  /** Ends the instance and deletes its data for good. Idempotent. */
  destroy(id: string): Promise<void>;
  /** The ids of all instances whose data exists here. */
  list(): Promise<readonly string[]>;
  /** An empty further database in the instance (restore, verify), owned by the platform, usable by the role. Idempotent. */
  createDatabase(spec: DatabaseSpec, name: string): Promise<void>;
  /** Ends its connections and drops it. Idempotent. */
  dropDatabase(spec: DatabaseSpec, name: string): Promise<void>;
  /** Ends one session of the project's role by its process id, whatever it is doing; another role's is left alone. Idempotent. */
  endSession(spec: DatabaseSpec, processId: number): Promise<void>;
  /**
   * The login of a role that reads what the project's role may read, in this database, and can neither change anything nor end
   * the application's sessions. Idempotent. Rejects with `DatabaseWorkFailed` when the database does not exist.
   */
  readerLogin(spec: DatabaseSpec, database: string): Promise<RoleLogin>;
  /** Makes a role that acts as the project's role, for one session of a person. Its name and password are the caller's choice. */
  openSessionRole(spec: DatabaseSpec, login: RoleLogin): Promise<void>;
  /** Ends the role's connections, hands what it owns to the project's role and drops it. Idempotent. */
  dropSessionRole(spec: DatabaseSpec, roleName: string): Promise<void>;
  /** The names of all databases of the instance but PostgreSQL's own. */
  listDatabases(spec: DatabaseSpec): Promise<readonly string[]>;
  /**
   * Dumps the database as an archive of pg_dump (custom format, not compressed) and counts the rows of its tables, both in one
   * snapshot, while others go on writing. Done as a role that may read what the project's role may, past row security, and is
   * no superuser. Rejects with `DatabaseWorkFailed`, or with what `consume` rejected with.
   */
  dump(spec: DatabaseSpec, options: DumpOptions): Promise<DumpSummary>;
  /**
   * Restores an archive into an empty further database, as the project's role and in one transaction: whatever the archive
   * makes the server do, the project's owner could do as well. Rejects with `DatabaseWorkFailed`, or with the stream's error.
   */
  restore(spec: DatabaseSpec, name: string, options: RestoreOptions): Promise<void>;
  /** The SQL text of an archive, without owners and grants; its reader learns of failures as its error. */
  archiveAsText(spec: DatabaseSpec, options: RestoreOptions): Promise<Readable>;
  /** Counts the rows of a database's tables, as `dump` does. */
  countRows(spec: DatabaseSpec, name: string, options: CountOptions): Promise<readonly TableCount[]>;
}

/** A role of an instance beside the project's own. Holds a secret. */
export type RoleLogin = Pick<DatabaseSpec, "role_name" | "password">;

export interface DumpOptions extends CountOptions {
  /** Whether the archive comes compressed by zstd. */
  readonly isCompressed: boolean;
  /** Takes the archive as it comes; the dump is done when this resolves. */
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
  /** Of the server, such as `15.14`. */
  readonly engine_version: string;
}

/** A table with rows of its own: ordinary ones and partitions, but none that an extension made. */
export interface TableCount {
  /** Schema and name, quoted as SQL wants it: `public.orders`, `app."Order"`. */
  readonly table: string;
  readonly rows: number;
}

/** Why a dump, a restore or a count failed. The message is a sentence for the project's owner. */
export class DatabaseWorkFailed extends Error {
  /** `full`: no disk space · `away`: the server is not there · `refused`: what the database itself said no to · `missing`: no program for it. */
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
  /** Small, unique and never reused: uid and port are made from it. */
  readonly project_number: number;
  readonly role_name: string;
  readonly database_name: string;
  /** Secret: reaches the server by a file or a protocol message, never by argv. */
  readonly password: string;
  /**
   * What the project's role may do: everything; by default only read, while a session that asks to write may delete; or not
   * even log in. A change ends the sessions of a role that loses rights.
   */
  readonly access: "open" | "read_only" | "closed";
}

/** Where the platform itself finds the server; what an application sees is the runtime's to say. */
export interface DatabaseEndpoint extends ServerAddress {
  readonly engine_version: string;
}

export type DatabaseObservation =
  | { readonly state: "absent" | "stopped" }
  | {
      readonly state: "running";
      readonly endpoint: DatabaseEndpoint;
      /** Of all databases of the instance and of the temporary files of its sessions. */
      readonly size_bytes: number;
      /** Of the project's own database. */
      readonly connections: number;
      /** Whether password, settings and rights of the role are as `ensure` made them: its owner may change some of them. */
      readonly intact: boolean;
      /** A table is being rewritten (`VACUUM FULL`), which takes space before it returns space. */
      readonly compacting: boolean;
    };
