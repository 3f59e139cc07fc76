import { randomBytes } from "node:crypto";
import { newId } from "../../kit/ids.ts";
import type { DatabaseSpec, PostgresHost } from "../../ports/postgres-host.ts";
import type { ServerAddress } from "../../kit/server-address.ts";
import type { ServerTls } from "../../kit/server-tls.ts";
import { until } from "../../kit/until.ts";
import type { Db, Tx } from "../../store/database.ts";
import type { Vault } from "../../store/vault.ts";
import type { Wakeups } from "../../store/wakeups.ts";
import { beginWaking } from "../sleep/sleep.ts";
import { databaseOfDeployment, insertDatabase, type DatabaseRow } from "./queries.ts";

export * from "./queries.ts";

export { deadTunnels, deleteOldTunnels, markTunnelClosed } from "./tunnel-queries.ts";

/** Why a request that names a branch finds none. */
export const noBranch = {
  error: "The project has no branch of this name that is ready.",
  hint: "`berth db branch list` lists its branches.",
};

/** The failure's code of a database that was ready before and whose data is gone. */
export const partMissing = "part_missing";

const secretName = "database_password";

/** Creates the password of a branch of the project's database, sealed as `specOf` expects it. */
export function newPassword(vault: Vault, projectId: string) {
  return vault.seal(projectId, secretName, randomBytes(24).toString("base64url"));
}

/** Creates the project's database row with random names and password; returns false when it already has one. */
export async function requestDatabase(
  tx: Tx,
  vault: Vault,
  project: { org_id: string; project_id: string; archived?: boolean },
): Promise<boolean> {
  const name = randomBytes(6).toString("hex");
  return insertDatabase(tx, {
    id: newId("dbs"),
    ...project,
    role_name: `u${name}`,
    database_name: `d${name}`,
    sealed_password: newPassword(vault, project.project_id),
  });
}

/** Returns what the postgres host needs to create or find the database, including the password. */
export function specOf(vault: Vault, row: DatabaseRow): DatabaseSpec {
  const { id, project_id, project_number, role_name, database_name } = row;
  return {
    id,
    project_id,
    project_number,
    role_name,
    database_name,
    password: vault.open(project_id, secretName, row.sealed_password),
    access: row.database_access ?? "open",
    was_ready: row.ready_at !== null,
  };
}

/** How an application comes to its database's server. */
export interface DatabaseReach {
  readonly endpointFor: (server: ServerAddress) => ServerAddress;
  readonly tlsOf: PostgresHost["tlsOf"];
}

/** Returns a deployment's database: environment variables with libpq's names, and the server's address. */
export async function databaseFor(
  db: Db,
  vault: Vault,
  deployment: { id: string; org_id: string; project_id: string },
  { endpointFor, tlsOf }: DatabaseReach,
): Promise<{ env: Record<string, string>; reach: ServerAddress[] }> {
  const row = await databaseOfDeployment(db, deployment);
  const server = row && serverOf(row);
  return server
    ? { env: databaseEnv(vault, row, endpointFor(server), tlsOf(row.id)), reach: [server] }
    : { env: {}, reach: [] };
}

/** Returns the address of the database's server as the platform reaches it; null while it is being created. */
export function serverOf({ host, port }: Pick<DatabaseRow, "host" | "port">): ServerAddress | null {
  return host === null || port === null ? null : { host, port };
}

/** Returns the variables of an application that has this database and reaches its server at this address, secured by `tls`. */
export function databaseEnv(
  vault: Vault,
  row: DatabaseRow,
  { host, port }: ServerAddress,
  tls: ServerTls | null,
): Record<string, string> {
  return databaseVariables(specOf(vault, row), { host, port }, tls);
}

/** As `databaseEnv`, for a database without a row. */
export function databaseVariables(
  { role_name, database_name, password }: Pick<DatabaseSpec, "role_name" | "database_name" | "password">,
  { host, port }: ServerAddress,
  tls: ServerTls | null,
): Record<string, string> {
  const query = tls === null ? "" : `?sslmode=${tls.mode}`;
  return {
    DATABASE_URL: `postgresql://${role_name}:${password}@${host}:${port}/${database_name}${query}`,
    PGHOST: host,
    PGPORT: String(port),
    PGUSER: role_name,
    PGPASSWORD: password,
    PGDATABASE: database_name,
    ...(tls === null ? {} : { PGSSLMODE: tls.mode }),
  };
}

interface Host {
  readonly db: Db;
  readonly wakeups: Wakeups;
  readonly vault: Vault;
  readonly ports: { readonly postgresHost: Pick<PostgresHost, "observe"> };
}

// PostgreSQL starts in less than a second; what then needs it longer says so itself.
const patienceMs = 20_000;

/** Returns the row once its server can be used: the preview that uses it may be asleep, and is woken then. */
export async function awaken<Row extends DatabaseRow | undefined>(
  { db, wakeups, vault, ports }: Host,
  row: Row,
  signal?: AbortSignal,
): Promise<Row> {
  if (row === undefined || !row.is_asleep || row.user_id === null) return row;
  await beginWaking({ db, wakeups }, row.user_id);
  const runs = async () => (await ports.postgresHost.observe(specOf(vault, row))).state === "running" || undefined;
  await until(runs, { timeoutMs: patienceMs, ...(signal && { signal }) });
  return row;
}
