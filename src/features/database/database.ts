import { randomBytes } from "node:crypto";
import { newId } from "../../kit/ids.ts";
import type { DatabaseSpec } from "../../ports/postgres-host.ts";
import type { ServerAddress } from "../../kit/server-address.ts";
import type { Db, Tx } from "../../store/database.ts";
import type { Vault } from "../../store/vault.ts";
import { databaseOfDeployment, insertDatabase, type DatabaseRow } from "./queries.ts";

export {
  databaseFailed,
  databaseOf,
  databaseOfDeployment,
  databaseReady,
  takeDatabase,
  wantedDatabases,
  type DatabaseRow,
} from "./queries.ts";

export { deadTunnels, deleteOldTunnels, markTunnelClosed } from "./tunnel-queries.ts";

const secretName = "database_password";

/** Creates the project's database row with random names and password; returns false when it already has one. */
export async function requestDatabase(
  tx: Tx,
  vault: Vault,
  project: { org_id: string; project_id: string },
): Promise<boolean> {
  const name = randomBytes(6).toString("hex");
  const password = randomBytes(24).toString("base64url");
  return insertDatabase(tx, {
    id: newId("dbs"),
    ...project,
    role_name: `u${name}`,
    database_name: `d${name}`,
    sealed_password: vault.seal(project.project_id, secretName, password),
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
  };
}

/** Returns a deployment's database: environment variables with libpq's names, and the server's address. */
export async function databaseFor(
  db: Db,
  vault: Vault,
  deployment: { id: string; org_id: string; project_id: string },
  endpointFor: (server: ServerAddress) => ServerAddress,
): Promise<{ env: Record<string, string>; reach: ServerAddress[] }> {
  const row = await databaseOfDeployment(db, deployment);
  const server = row && serverOf(row);
  return server ? { env: databaseEnv(vault, row, endpointFor(server)), reach: [server] } : { env: {}, reach: [] };
}

/** Returns the address of the database's server as the platform reaches it; null while it is being created. */
export function serverOf({ host, port }: Pick<DatabaseRow, "host" | "port">): ServerAddress | null {
  return host === null || port === null ? null : { host, port };
}

/** Returns the variables of an application that has this database and reaches its server at this address. */
export function databaseEnv(vault: Vault, row: DatabaseRow, { host, port }: ServerAddress): Record<string, string> {
  const { role_name, database_name, password } = specOf(vault, row);
  return {
    DATABASE_URL: `postgresql://${role_name}:${password}@${host}:${port}/${database_name}`,
    PGHOST: host,
    PGPORT: String(port),
    PGUSER: role_name,
    PGPASSWORD: password,
    PGDATABASE: database_name,
  };
}
