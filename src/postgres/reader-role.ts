import { createHash } from "node:crypto";
import { escapeIdentifier as name, escapeLiteral as text } from "pg";
import type { Client } from "pg";
import type { DatabaseSpec } from "../ports/postgres-host.ts";
import { scramVerifier } from "./scram.ts";

const attributes = "LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION BYPASSRLS INHERIT";
// One connection for each query that may read a database at the same time, and one that is just closing.
const connectionLimit = 4;
const settings = {
  statement_timeout: "5s",
  default_transaction_read_only: "on",
  log_min_messages: "fatal",
  log_min_error_statement: "panic",
  temp_file_limit: "1GB",
};

/** Returns the name of the role that runs read-only statements for people. */
export function readerRoleOf(spec: DatabaseSpec): string {
  return `${spec.role_name}_reader`;
}

/** The memory that the session of one reading statement may take. Three at once leave room in an instance's 512 MiB. */
export const readingMemoryBytes = 96 * 1024 * 1024;

/**
 * Creates the reader role if missing and grants it what the project's role can read in the connected database, which must be one of the
 * project's. It is a member of no role: not of the project's, so it can't change data, hold locks against the application or end its
 * sessions, and not of `pg_read_all_data`, which reads password hashes, too, and every database of the server. Idempotent; costs one
 * statement when nothing has changed.
 */
export async function applyReaderRole(client: Client, spec: DatabaseSpec, password: string): Promise<void> {
  // A fixed salt, so that the verifier shows whether the role is unchanged.
  const salt = createHash("sha256").update(`reader salt ${password}`).digest().subarray(0, 16);
  const verifier = scramVerifier(password, salt);
  if (!(await isApplied(client, readerRoleOf(spec), verifier))) await applyRole(client, readerRoleOf(spec), verifier);
  await grantReading(client, spec);
}

async function isApplied(client: Client, role: string, verifier: string): Promise<boolean> {
  const { rows } = await client.query<{ applied: boolean }>(
    `SELECT r.rolpassword = $2 AND r.rolbypassrls AND NOT r.rolsuper AND r.rolcanlogin
      AND has_database_privilege(r.oid, current_database(), 'CONNECT') AS applied
    FROM pg_authid r WHERE r.rolname = $1`,
    [role, verifier],
  );
  return rows[0]?.applied === true;
}

async function applyRole(client: Client, roleName: string, verifier: string): Promise<void> {
  const role = name(roleName);
  // Two queries at the same moment would fail at the same catalogue row.
  await client.query("SELECT pg_advisory_lock(hashtext('berth reader'))");
  const { rows } = await client.query<{ database: string; known: boolean }>(
    "SELECT current_database() AS database, EXISTS (SELECT FROM pg_roles WHERE rolname = $1) AS known",
    [roleName],
  );
  if (!rows[0]?.known) await client.query(`CREATE ROLE ${role} ${attributes}`);
  for (const [setting, value] of Object.entries(settings))
    await client.query(`ALTER ROLE ${role} SET ${setting} = ${text(value)}`);
  await client.query(`GRANT CONNECT ON DATABASE ${name(rows[0]?.database ?? "")} TO ${role}`);
  await client.query(
    `ALTER ROLE ${role} ${attributes} CONNECTION LIMIT ${connectionLimit} PASSWORD ${text(verifier)} VALID UNTIL 'infinity'`,
  );
}

// What the project's role ($1) can read and the reader ($2) can't. A GRANT runs no code of the objects' owner.
const missingGrants = `
  SELECT format('GRANT USAGE ON SCHEMA %I TO %I', n.nspname, $2::text) AS statement FROM pg_namespace n
  WHERE n.nspname NOT LIKE 'pg\\_%' AND has_schema_privilege($1, n.oid, 'USAGE') AND NOT has_schema_privilege($2, n.oid, 'USAGE')
  UNION ALL
  SELECT format('GRANT SELECT ON %I.%I TO %I', n.nspname, c.relname, $2::text)
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
  WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S') AND n.nspname NOT LIKE 'pg\\_%'
    AND has_table_privilege($1, c.oid, 'SELECT') AND NOT has_table_privilege($2, c.oid, 'SELECT')`;

async function grantReading(client: Client, spec: DatabaseSpec): Promise<void> {
  for (let attempt = 1; attempt <= 3; attempt += 1) {
    const { rows } = await client.query<{ statement: string }>(missingGrants, [spec.role_name, readerRoleOf(spec)]);
    if (rows.length === 0) return;
    // A migration may hold or drop one of the objects. A statement that reads what is still not granted is refused by PostgreSQL.
    const statements = ["SET lock_timeout = '1s'", ...rows.map(({ statement }) => statement)];
    if (await client.query(statements.join("; ")).then(() => true, isOfObject)) return;
  }
}

/** Returns false for an error that concerns an object, such as a dropped table; throws any other. */
function isOfObject(error: Error & { code?: string }): false {
  if (/^(?:42|3F|55P03|XX000|40)/.test(error.code ?? "")) return false;
  throw error;
}
