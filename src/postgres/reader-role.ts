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

/**
 * Creates the reader role if missing and grants it access to the database. It can read whatever the project's role can read but is no
 * member of that role, so it can't change data, hold locks against the application or end its sessions. Idempotent; an unchanged role costs
 * one statement.
 */
export async function applyReaderRole(
  client: Client,
  spec: DatabaseSpec,
  { password, database }: { readonly password: string; readonly database: string },
): Promise<void> {
  // A fixed salt, so that the verifier shows whether the role is unchanged.
  const salt = createHash("sha256").update(`reader salt ${password}`).digest().subarray(0, 16);
  const verifier = scramVerifier(password, salt);
  if (await isApplied(client, { role: readerRoleOf(spec), verifier, database })) return;
  const role = name(readerRoleOf(spec));
  // Two queries at the same moment would fail at the same catalogue row.
  await client.query("SELECT pg_advisory_lock(hashtext('berth reader'))");
  const { rowCount } = await client.query("SELECT FROM pg_roles WHERE rolname = $1", [readerRoleOf(spec)]);
  if (rowCount === 0) await client.query(`CREATE ROLE ${role} ${attributes}`);
  for (const [setting, value] of Object.entries(settings))
    await client.query(`ALTER ROLE ${role} SET ${setting} = ${text(value)}`);
  await client.query(`GRANT pg_read_all_data TO ${role}`);
  await client.query(`GRANT CONNECT ON DATABASE ${name(database)} TO ${role}`);
  await client.query(
    `ALTER ROLE ${role} ${attributes} CONNECTION LIMIT ${connectionLimit} PASSWORD ${text(verifier)} VALID UNTIL 'infinity'`,
  );
}

interface Applied {
  readonly role: string;
  readonly verifier: string;
  readonly database: string;
}

async function isApplied(client: Client, { role, verifier, database }: Applied): Promise<boolean> {
  const { rows } = await client.query<{ applied: boolean }>(
    `SELECT r.rolpassword = $2 AND r.rolbypassrls AND NOT r.rolsuper AND pg_has_role(r.oid, 'pg_read_all_data', 'USAGE')
      AND has_database_privilege(r.oid, $3, 'CONNECT') AS applied
    FROM pg_authid r WHERE r.rolname = $1`,
    [role, verifier, database],
  );
  return rows[0]?.applied === true;
}
