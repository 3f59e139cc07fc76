import { escapeIdentifier as name } from "pg";
import type { Client } from "pg";

/**
 * Makes the database exist, owned by the platform (an owner may drop it) and open to the role alone. Idempotent.
 * `open` gives a connection to another database of the instance.
 */
export async function applyDatabase(client: Client, database: string, role: string): Promise<void> {
  const { rowCount } = await client.query("SELECT FROM pg_database WHERE datname = $1", [database]);
  if (rowCount === 0)
    await client.query(
      `CREATE DATABASE ${name(database)} TEMPLATE template0 ENCODING 'UTF8' LC_COLLATE 'C.UTF-8' LC_CTYPE 'C.UTF-8'`,
    );
  await client.query(`REVOKE ALL ON DATABASE ${name(database)} FROM PUBLIC`);
  await client.query(`GRANT CONNECT, TEMPORARY, CREATE ON DATABASE ${name(database)} TO ${name(role)}`);
}

/** Hands the schema `public` of the connected database to the role; a schema that its owner dropped stays dropped. */
export async function applySchema(client: Client, role: string): Promise<void> {
  const { rows } = await client.query<{ owner: string }>(
    "SELECT nspowner::regrole::text AS owner FROM pg_namespace WHERE nspname = 'public'",
  );
  if (rows.length === 0) return;
  await client.query(`ALTER SCHEMA public OWNER TO ${name(role)}`);
}

/** Ends the database's connections and drops it. Idempotent. */
export async function dropDatabase(client: Client, database: string): Promise<void> {
  await client.query(`DROP DATABASE IF EXISTS ${name(database)} WITH (FORCE)`);
}

/** The names of the instance's databases. */
export async function listDatabases(client: Client): Promise<string[]> {
  const { rows } = await client.query<{ datname: string }>("SELECT datname FROM pg_database ORDER BY datname");
  return rows.map((row) => row.datname);
}

/** Size and connections, without entering a database; undefined when the project's own one does not exist. */
export async function measureDatabases(
  client: Client,
  database: string,
): Promise<{ size_bytes: number; connections: number; compacting: boolean } | undefined> {
  const { rows } = await client.query<{ size: string; connections: string; compacting: boolean }>(
    `SELECT (SELECT coalesce(sum(pg_database_size(oid)), 0) FROM pg_database WHERE NOT datistemplate AND datname <> 'postgres')
        + (SELECT coalesce(sum(size), 0) FROM pg_ls_tmpdir()) AS size,
      (SELECT count(*) FROM pg_stat_activity WHERE datid = d.oid) AS connections,
      EXISTS (SELECT FROM pg_stat_progress_cluster) AS compacting
    FROM pg_database d WHERE datname = $1`,
    [database],
  );
  const [found] = rows;
  return found && { ...found, size_bytes: Number(found.size), connections: Number(found.connections) };
}
