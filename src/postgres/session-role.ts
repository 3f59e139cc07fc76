import { escapeIdentifier as name, escapeLiteral as text } from "pg";
import type { Client } from "pg";
import type { DatabaseSpec, RoleLogin } from "../ports/postgres-host.ts";
import { scramVerifier } from "./scram.ts";

const attributes = "LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS INHERIT";
const connectionLimit = 4;
const settings = {
  temp_file_limit: "1GB",
  log_min_messages: "fatal",
  log_min_error_statement: "panic",
};

/**
 * Creates a role for one person's session: a member of the project's role that acts as that role from login, so that the project's role
 * owns whatever it creates. Its password expires after a day, in case nothing drops the role.
 */
export async function createSessionRole(client: Client, spec: DatabaseSpec, login: RoleLogin): Promise<void> {
  const role = name(login.role_name);
  const readOnly = spec.access === "open" ? {} : { default_transaction_read_only: "on" };
  const statements = [
    `CREATE ROLE ${role} ${attributes} CONNECTION LIMIT ${connectionLimit} PASSWORD ${text(scramVerifier(login.password))}
      VALID UNTIL ${text(new Date(Date.now() + 86_400_000).toISOString())} IN ROLE ${name(spec.role_name)}`,
    ...Object.entries({ ...settings, ...readOnly, role: spec.role_name }).map(
      ([setting, value]) => `ALTER ROLE ${role} SET ${setting} = ${text(value)}`,
    ),
  ];
  await client.query(["BEGIN", ...statements, "COMMIT"].join("; "));
}

/** Bars the role from logging in, terminates its sessions, and returns the databases in which it owns something or has rights. */
export async function closeSessionRole(client: Client, roleName: string): Promise<readonly string[] | "missing"> {
  const { rowCount } = await client.query("SELECT FROM pg_roles WHERE rolname = $1", [roleName]);
  if (rowCount === 0) return "missing";
  await client.query(`ALTER ROLE ${name(roleName)} NOLOGIN`);
  await client.query("SELECT pg_terminate_backend(pid, 2000) FROM pg_stat_activity WHERE usename = $1", [roleName]);
  const { rows } = await client.query<{ datname: string }>(
    `SELECT DISTINCT d.datname FROM pg_shdepend s JOIN pg_database d ON d.oid = s.dbid OR (s.dbid = 0 AND d.datname = 'postgres')
    WHERE s.refclassid = 'pg_authid'::regclass AND s.refobjid = (SELECT oid FROM pg_roles WHERE rolname = $1)`,
    [roleName],
  );
  return rows.map(({ datname }) => datname);
}

/** Reassigns what the role owns in the connected database to the project's role, and revokes the role's rights there. */
export async function handOverOwned(client: Client, spec: DatabaseSpec, roleName: string): Promise<void> {
  await client.query(`REASSIGN OWNED BY ${name(roleName)} TO ${name(spec.role_name)}`);
  await client.query(`DROP OWNED BY ${name(roleName)}`);
}

export async function dropRole(client: Client, roleName: string): Promise<void> {
  await client.query(`DROP ROLE IF EXISTS ${name(roleName)}`);
}
