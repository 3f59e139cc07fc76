import { escapeIdentifier as name, escapeLiteral as text } from "pg";
import type { Client } from "pg";
import type { DatabaseSpec } from "../ports/postgres-host.ts";
import { scramVerifier } from "./scram.ts";

const attributes = "LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION BYPASSRLS INHERIT";
// A dump takes one connection and its snapshot another; counting a restored database takes one more.
const connectionLimit = 4;
// A dump of a large database takes hours, so the limits that protect against an application's accidents must not end it.
const settings = {
  statement_timeout: "0",
  idle_in_transaction_session_timeout: "0",
  lock_timeout: "60s",
  default_transaction_read_only: "on",
  log_min_messages: "fatal",
  log_min_error_statement: "panic",
  temp_file_limit: "1GB",
};

export function backupRoleOf(spec: DatabaseSpec): string {
  return `${spec.role_name}_backup`;
}

/**
 * Creates or repairs the backup role with this password: a member of the project's role that bypasses row security and is no superuser.
 * Anything the project's owner tricks it into doing, the owner could do alone. Idempotent.
 */
export async function applyBackupRole(client: Client, spec: DatabaseSpec, password: string): Promise<void> {
  const role = name(backupRoleOf(spec));
  const { rowCount } = await client.query("SELECT FROM pg_roles WHERE rolname = $1", [backupRoleOf(spec)]);
  if (rowCount === 0) await client.query(`CREATE ROLE ${role} ${attributes}`);
  await client.query(
    `ALTER ROLE ${role} ${attributes} CONNECTION LIMIT ${connectionLimit} PASSWORD ${text(scramVerifier(password))} VALID UNTIL 'infinity'`,
  );
  await client.query(`ALTER ROLE ${role} RESET ALL`);
  for (const [setting, value] of Object.entries(settings))
    await client.query(`ALTER ROLE ${role} SET ${setting} = ${text(value)}`);
  await client.query(`GRANT ${name(spec.role_name)} TO ${role}`);
}
