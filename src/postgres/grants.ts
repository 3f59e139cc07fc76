import { escapeIdentifier as name } from "pg";
import type { Client } from "pg";

export interface WantedDatabase {
  readonly database: string;
  /** The role that may use the database. */
  readonly role: string;
  /** The role that owns the database; null for the platform's own. */
  readonly owner: string | null;
}

/**
 * Creates the database if missing, owned by the platform (an owner could drop it), and grants access to the role alone. Idempotent. Throws if
 * `owner` is given and does not own it.
 * `client` is connected to another database of the server.
 */
export async function applyDatabase(client: Client, { database, role, owner }: WantedDatabase): Promise<void> {
  const owned = owner === null ? "" : `OWNER ${name(owner)}`;
  if (!(await isExisting(client, database, owner)))
    await client.query(
      `CREATE DATABASE ${name(database)} ${owned} TEMPLATE template0 ENCODING 'UTF8' LC_COLLATE 'C.UTF-8' LC_CTYPE 'C.UTF-8'`,
    );
  await client.query(`REVOKE ALL ON DATABASE ${name(database)} FROM PUBLIC`);
  await client.query(`GRANT CONNECT, TEMPORARY, CREATE ON DATABASE ${name(database)} TO ${name(role)}`);
}

/** Makes the role the owner of the schema `public` of the connected database; does not recreate a schema that its owner dropped. */
export async function applySchema(client: Client, role: string): Promise<void> {
  const { rows } = await client.query<{ owner: string }>(
    "SELECT nspowner::regrole::text AS owner FROM pg_namespace WHERE nspname = 'public'",
  );
  if (rows.length === 0) return;
  await client.query(`ALTER SCHEMA public OWNER TO ${name(role)}`);
}

/** Terminates the database's connections and drops it. Idempotent. Throws if `owner` is given and does not own the database. */
export async function dropDatabase(client: Client, database: string, owner: string | null): Promise<void> {
  await isExisting(client, database, owner);
  await client.query(`DROP DATABASE IF EXISTS ${name(database)} WITH (FORCE)`);
}

/** Returns whether the database exists. Throws if `owner` is given and does not own it. */
async function isExisting(client: Client, database: string, owner: string | null): Promise<boolean> {
  const { rows } = await client.query<{ owner: string }>(
    "SELECT pg_get_userbyid(datdba) AS owner FROM pg_database WHERE datname = $1",
    [database],
  );
  if (owner !== null && rows.some((found) => found.owner !== owner))
    throw new Error(`the database ${database} does not belong to ${owner}`);
  return rows.length > 0;
}

// $1: the role that owns the project's databases, or null when every database of the server is the project's.
const ownDatabases = `SELECT oid, datname FROM pg_database
  WHERE datname NOT IN ('postgres', 'template0', 'template1') AND ($1::text IS NULL OR pg_get_userbyid(datdba) = $1)`;

/** Returns the names of the databases that `owner` owns, or, for null, of all databases except PostgreSQL's own. */
export async function listDatabases(client: Client, owner: string | null): Promise<string[]> {
  const { rows } = await client.query<{ datname: string }>(`${ownDatabases} ORDER BY datname`, [owner]);
  return rows.map((row) => row.datname);
}

/** Measures size and connections without connecting to the databases; undefined when the project's own one does not exist. */
export async function measureDatabases(
  client: Client,
  { database, owner }: Pick<WantedDatabase, "database" | "owner">,
): Promise<{ size_bytes: number; connections: number; compacting: boolean } | undefined> {
  const { rows } = await client.query<{ size: string; connections: string; compacting: boolean }>(
    `WITH own AS (${ownDatabases}),
      sessions AS (SELECT pid, datid FROM pg_stat_activity WHERE datid IN (SELECT oid FROM own))
    SELECT (SELECT coalesce(sum(pg_database_size(oid)), 0) FROM own)
        + (SELECT coalesce(sum(size), 0) FROM pg_ls_tmpdir() t WHERE $1::text IS NULL
          OR EXISTS (SELECT FROM sessions WHERE starts_with(t.name, 'pgsql_tmp' || pid || '.'))) AS size,
      (SELECT count(*) FROM sessions WHERE datid = d.oid) AS connections,
      EXISTS (SELECT FROM pg_stat_progress_cluster WHERE datid IN (SELECT oid FROM own)) AS compacting
    FROM pg_database d WHERE datname = $2`,
    [owner, database],
  );
  const [found] = rows;
  return (
    found && {
      size_bytes: Number(found.size),
      connections: Number(found.connections),
      compacting: found.compacting,
    }
  );
}
