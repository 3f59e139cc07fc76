import type { Client } from "pg";
import type { DatabaseSpec } from "../ports/postgres-host.ts";
import { withConnection, type ServerConnection } from "./connection.ts";

/** Returns the server's version, such as `15.14`, over a login as the project's role, which proves that the role can enter its database. */
export async function versionSeenByRole(superuser: ServerConnection, spec: DatabaseSpec): Promise<string> {
  const { role_name: user, password, database_name: database } = spec;
  try {
    return await withConnection({ ...superuser, user, password, database }, readVersion);
  } catch (error) {
    // Too many connections: the role uses all of its own or is allowed none, both of which are legitimate.
    if ((error as { code?: string }).code !== "53300") throw error;
    return withConnection(superuser, readVersion);
  }
}

export async function readVersion(client: Pick<Client, "query">): Promise<string> {
  const { rows } = await client.query<{ version: string }>(
    "SELECT pg_catalog.split_part(pg_catalog.current_setting('server_version'), ' ', 1) AS version",
  );
  return rows[0]?.version ?? "unknown";
}
