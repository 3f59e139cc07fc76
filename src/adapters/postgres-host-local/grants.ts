import { escapeIdentifier as name, escapeLiteral as text } from "pg";
import type { Client } from "pg";
import type { DatabaseSpec } from "../../ports/postgres-host.ts";
import { scramVerifier } from "./scram.ts";

/** Counts up when the statements below change, so that existing instances get them too. */
export const grantsVersion = 1;

const connectionLimit = 20;
const attributes = "LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS NOINHERIT";
// The owner may change these for itself: they help against accidents.
const defaults = { statement_timeout: "5min", idle_in_transaction_session_timeout: "60s" };
// Only a superuser may change these. The server's log must not be filled, nor learn statements.
const limits = { temp_file_limit: "1GB", log_min_messages: "fatal", log_min_error_statement: "panic" };
const duplicateObject = "42710";

/** Makes the role exist with the password and the rights of `spec`, and closes what is open to everyone. Idempotent. */
export async function applyRole(client: Client, spec: DatabaseSpec): Promise<void> {
  await client.query("REVOKE CONNECT, TEMP ON DATABASE postgres, template1 FROM PUBLIC");
  await createRole(client, spec.role_name);
  const role = name(spec.role_name);
  await client.query(
    `ALTER ROLE ${role} ${attributes} CONNECTION LIMIT ${connectionLimit} PASSWORD ${text(scramVerifier(spec.password))} VALID UNTIL 'infinity'`,
  );
  await setForRole(client, role, limits);
}

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

/** Allows the role so many connections beyond its usual ones. */
export async function setConnectionLimit(client: Client, role: string, more: number): Promise<void> {
  await client.query(`ALTER ROLE ${name(role)} CONNECTION LIMIT ${connectionLimit + more}`);
}

/** Size and connections of a database, without entering it. */
export async function measureDatabase(
  client: Client,
  database: string,
): Promise<{ size_bytes: number; connections: number } | undefined> {
  const { rows } = await client.query<{ size: string; connections: string }>(
    `SELECT pg_database_size(oid) AS size, (SELECT count(*) FROM pg_stat_activity WHERE datid = d.oid) AS connections FROM pg_database d WHERE datname = $1`,
    [database],
  );
  return rows[0] && { size_bytes: Number(rows[0].size), connections: Number(rows[0].connections) };
}

// In one transaction, so that a role exists with its defaults or not at all; later they are the owner's to change.
async function createRole(client: Client, roleName: string): Promise<void> {
  await client.query("BEGIN");
  try {
    await client.query(`CREATE ROLE ${name(roleName)} ${attributes} CONNECTION LIMIT ${connectionLimit}`);
    await setForRole(client, name(roleName), defaults);
    await client.query("COMMIT");
  } catch (error) {
    await client.query("ROLLBACK");
    if ((error as { code?: string }).code !== duplicateObject) throw error;
  }
}

async function setForRole(client: Client, role: string, settings: Readonly<Record<string, string>>): Promise<void> {
  for (const [setting, value] of Object.entries(settings))
    await client.query(`ALTER ROLE ${role} SET ${setting} = ${text(value)}`);
}
