/**
 * Runs one PostgreSQL instance per project, under an unprivileged uid of its own. Instances outlive the control plane.
 * Whatever touches what the project's owner made is done as the project's role, never as a superuser.
 */
export interface PostgresHost {
  /**
   * Makes the instance exist, run, and hold the role and database of `spec`, hardened. Idempotent at every step.
   * Resolves when the database accepts connections as the role. Throws with a sentence for the operator when it cannot.
   */
  ensure(spec: DatabaseSpec): Promise<DatabaseEndpoint>;
  /** What runs, without changing anything. */
  observe(spec: DatabaseSpec): Promise<DatabaseObservation>;
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
}

export interface DatabaseEndpoint {
  /** Always 127.0.0.1 as the application sees it. */
  readonly host: string;
  readonly port: number;
  /** The unix socket itself (`…/.s.PGSQL.<port>`), for the platform and for sandboxes without the host's network. */
  readonly socket_path: string;
  readonly engine_version: string;
}

export type DatabaseObservation =
  | { readonly state: "absent" | "stopped" }
  | {
      readonly state: "running";
      readonly endpoint: DatabaseEndpoint;
      readonly size_bytes: number;
      readonly connections: number;
    };
