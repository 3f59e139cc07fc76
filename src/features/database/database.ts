import { randomBytes } from "node:crypto";
import { newId } from "../../kit/ids.ts";
import type { DatabaseSpec } from "../../ports/postgres-host.ts";
import type { LocalService } from "../../ports/runtime.ts";
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

/** Gives the project a database row with random names and password; false when it has one already. */
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

/** What the postgres host needs to make or find the database. Holds the password. */
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

/** What a deployment's application gets of its database: variables of its environment (libpq's names) and the service to reach. */
export async function databaseFor(
  db: Db,
  vault: Vault,
  deployment: { id: string; org_id: string; project_id: string },
): Promise<{ env: Record<string, string>; reach: LocalService[] }> {
  const row = await databaseOfDeployment(db, deployment);
  if (!row || row.port === null || row.socket_path === null) return { env: {}, reach: [] };
  return { env: databaseEnv(vault, row), reach: [{ port: row.port, socket_path: row.socket_path }] };
}

/** The variables of an application that has this database; none as long as its address is unknown. */
export function databaseEnv(vault: Vault, row: DatabaseRow): Record<string, string> {
  if (row.port === null) return {};
  const { role_name, database_name, password } = specOf(vault, row);
  return {
    DATABASE_URL: `postgresql://${role_name}:${password}@127.0.0.1:${row.port}/${database_name}`,
    PGHOST: "127.0.0.1",
    PGPORT: String(row.port),
    PGUSER: role_name,
    PGPASSWORD: password,
    PGDATABASE: database_name,
  };
}
