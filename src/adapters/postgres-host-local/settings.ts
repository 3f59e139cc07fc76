import { statementSettings } from "../../postgres/statements.ts";

/** The superuser's role. It can log in only over the Unix socket, with the secret in the instance's folder. */
export const superuser = "berth";

/** Settings that differ between servers. For `port` null, the server listens on its Unix socket only. */
export interface ServerSettings {
  readonly port: number | null;
  readonly socketFolder: string;
  readonly socketMode: "private" | "shared";
  readonly countsStatements: boolean;
  readonly overrides: Readonly<Record<string, string>>;
  /** See `LocalServerOptions`. */
  readonly isRecovered: boolean;
}

/** The number in the socket's file name for a server without a TCP port. */
export const socketOnlyPort = 5432;

/** Returns `postgresql.conf`, with small sizes: about 28 MB of memory each. Reserved connections keep the platform from being locked out. */
export function postgresqlConf(settings: ServerSettings): string {
  const values: Record<string, string> = {
    listen_addresses: settings.port === null ? "" : "127.0.0.1",
    port: String(settings.port ?? socketOnlyPort),
    unix_socket_directories: settings.socketFolder,
    unix_socket_permissions: settings.socketMode === "shared" ? "0777" : "0700",
    ...everyServer,
    ...(settings.countsStatements ? statementSettings : {}),
    ...settings.overrides,
  };
  return `${Object.entries(values)
    .map(([name, value]) => `${name} = '${value.replaceAll("'", "''")}'`)
    .join("\n")}\n`;
}

/** A slot keeps the log until it is stored elsewhere, up to the limit; then the log goes, and the writes go on. */
export const keptLog = { max_replication_slots: "1", max_slot_wal_keep_size: "512MB" };

const everyServer = {
  password_encryption: "scram-sha-256",
  max_connections: "30",
  superuser_reserved_connections: "5",
  shared_buffers: "16MB",
  work_mem: "4MB",
  maintenance_work_mem: "32MB",
  max_wal_size: "256MB",
  min_wal_size: "32MB",
  max_wal_senders: "0",
  ...keptLog,
  max_prepared_transactions: "0",
  max_parallel_workers: "0",
  max_parallel_workers_per_gather: "0",
  max_worker_processes: "2",
  autovacuum_max_workers: "1",
  jit: "off",
  huge_pages: "off",
  // A log-in must not fail because the machine is busy.
  authentication_timeout: "60s",
  timezone: "UTC",
  log_timezone: "UTC",
  log_line_prefix: "%m [%p] ",
  log_statement: "none",
  // Statements may hold secrets, so the log gets only the messages of errors.
  log_min_error_statement: "panic",
  log_parameter_max_length_on_error: "0",
  log_checkpoints: "off",
};

/** Returns `pg_hba.conf`, in which the first matching line decides. Grants determine which database a role may enter. */
export function pgHbaConf({ isRecovered }: Pick<ServerSettings, "isRecovered">): string {
  return [
    `local all ${superuser} ${isRecovered ? "trust" : "scram-sha-256"}`,
    `host all ${superuser} all reject`,
    "local all all scram-sha-256",
    ...(isRecovered ? [] : ["host all all 127.0.0.1/32 scram-sha-256"]),
    "",
  ].join("\n");
}
