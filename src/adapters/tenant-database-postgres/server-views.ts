import type { Connections, Extension } from "../../ports/tenant-database.ts";
import { applicationName, type Session } from "./session.ts";
import { Stopped } from "./unable.ts";

const mostConnections = 100;
const queryLetters = 200;

const time = (column: string) => `pg_catalog.to_char(${column} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS`;

// PostgreSQL hides what sessions of other roles do. On a server of several projects, only those of this database are listed.
const connections = `SELECT pid, pg_catalog.left(application_name, 100) AS application, state,
    CASE WHEN application_name = '${applicationName}' THEN 'platform' WHEN usename = current_user THEN 'application' WHEN pg_catalog.starts_with(usename, current_user || '_t') THEN 'person' ELSE 'platform' END AS kind,
    ${time("backend_start")} connected_at, ${time("state_change")} since, wait_event_type || ': ' || wait_event AS waits_for,
    CASE WHEN state IS NOT NULL THEN pg_catalog.left(query, ${queryLetters}) END AS query
  FROM pg_catalog.pg_stat_activity
  WHERE datname = pg_catalog.current_database() AND usename IS NOT NULL AND pid <> pg_catalog.pg_backend_pid()
  ORDER BY (state IS DISTINCT FROM 'idle') DESC, state_change, pid LIMIT ${mostConnections + 1}`;

export async function listConnections(session: Session): Promise<Connections> {
  const found = await session.query<Connections["connections"][number]>(connections);
  const limit = "SELECT rolconnlimit AS limit FROM pg_catalog.pg_roles WHERE rolname = current_user";
  const [role] = await session.query<{ limit: number }>(limit);
  return {
    connections: found.slice(0, mostConnections),
    limit: role?.limit ?? 0,
    more: found.length > mostConnections,
  };
}

/** Ends a session of the project's role; others are missing, such as a backup's. */
export async function endConnection(session: Session, processId: number): Promise<null> {
  // Larger than any process id.
  if (processId > 2_147_483_647) throw new Stopped({ outcome: "missing" });
  const ended = await session.query(
    `SELECT pg_catalog.pg_terminate_backend(pid) FROM pg_catalog.pg_stat_activity
    WHERE pid = $1::pg_catalog.int4 AND usename = current_user AND datname = pg_catalog.current_database()`,
    [String(processId)],
  );
  if (ended.length === 0) throw new Stopped({ outcome: "missing" });
  return null;
}

// A trusted extension is created with the rights of the server's superuser by whoever may create in the database.
const extensions = `SELECT e.name::pg_catalog.text AS name, e.installed_version AS version, e.default_version AS available_version,
    COALESCE(e.comment, '') AS about, CASE WHEN v.trusted THEN 'project' ELSE 'operator' END AS creator
  FROM pg_catalog.pg_available_extensions e
  LEFT JOIN pg_catalog.pg_available_extension_versions v ON v.name = e.name AND v.version = e.default_version
  ORDER BY e.installed_version IS NULL, v.trusted DESC NULLS LAST, e.name`;

export function listExtensions(session: Session): Promise<Extension[]> {
  return session.query<Extension>(extensions);
}
