import type { Client } from "pg";
import type { DatabaseSpec } from "../ports/postgres-host.ts";
import { withConnection, type ServerConnection } from "./connection.ts";

/** The server's version, such as `15.14`, seen by a login as the project's role, which must get into its database. */
export async function versionSeenByRole(superuser: ServerConnection, spec: DatabaseSpec): Promise<string> {
  const { role_name: user, password, database_name: database } = spec;
  try {
    return await withConnection({ ...superuser, user, password, database }, readVersion);
  } catch (error) {
    // The role has all of its connections, or may have none: it is as it ought to be.
    if ((error as { code?: string }).code !== "53300") throw error;
    return withConnection(superuser, readVersion);
  }
}

export async function readVersion(client: Pick<Client, "query">): Promise<string> {
  const { rows } = await client.query<{ version: string }>(
    "SELECT split_part(current_setting('server_version'), ' ', 1) AS version",
  );
  return rows[0]?.version ?? "unknown";
}
