import { escapeIdentifier as name, escapeLiteral as text } from "pg";
import type { Client } from "pg";
import type { DatabaseSpec } from "../ports/postgres-host.ts";

const usualConnections = 20;
const attributes = "LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS NOINHERIT";
const settings = {
  // A session may override these: they only protect against accidents.
  statement_timeout: "5min",
  idle_in_transaction_session_timeout: "60s",
  // Only a superuser may change these. Tenants must not fill the server's log or get their statements into it.
  temp_file_limit: "1GB",
  log_min_messages: "fatal",
  log_min_error_statement: "panic",
};

/**
 * Creates or updates the role with this password and the settings of its access, and resets what its owner set for it in any database.
 * Otherwise a setting such as a missing `local_preload_libraries` would lock out all sessions for good. Idempotent.
 */
export async function applyRole(client: Client, spec: DatabaseSpec, verifier: string): Promise<void> {
  await closeServersDatabases(client);
  await createRole(client, spec.role_name);
  const role = name(spec.role_name);
  await client.query(
    `ALTER ROLE ${role} ${attributes} CONNECTION LIMIT ${connectionLimitOf(spec)} PASSWORD ${text(verifier)} VALID UNTIL 'infinity'`,
  );
  await resetSettings(client, spec);
  if (spec.access !== "open") await endSessions(client, spec.role_name);
}

/** Increase this when statements of this file, of grants.ts or of reader-role.ts change, so that they are applied to existing instances, too. */
export const grantsVersion = 3;

/** Applies the role's settings in one transaction, so that no session starts with half of them. */
export async function resetSettings(client: Client, spec: DatabaseSpec): Promise<void> {
  const role = name(spec.role_name);
  const { rows } = await client.query<{ datname: string }>(
    "SELECT datname FROM pg_db_role_setting s JOIN pg_database d ON d.oid = s.setdatabase WHERE s.setrole = to_regrole($1)",
    [role],
  );
  const statements = [
    ...rows.map(({ datname }) => `ALTER ROLE ${role} IN DATABASE ${name(datname)} RESET ALL`),
    `ALTER ROLE ${role} RESET ALL`,
    ...Object.entries(settingsOf(spec)).map(([setting, value]) => `ALTER ROLE ${role} SET ${setting} = ${text(value)}`),
  ];
  await client.query(["BEGIN", ...statements, "COMMIT"].join("; "));
}

/** Returns whether the role is still as `applyRole` and `applyDatabase` left it. */
export async function isRoleIntact(client: Client, spec: DatabaseSpec, verifier: string): Promise<boolean> {
  const { rows } = await client.query<{ password: string | null; settings: string[]; enters: boolean }>(
    `SELECT rolpassword AS password,
      ARRAY(SELECT setdatabase || ' ' || unnest(setconfig) FROM pg_db_role_setting WHERE setrole = r.oid) AS settings,
      has_database_privilege(r.oid, $2, 'CONNECT') AND has_database_privilege(r.oid, $2, 'CREATE')
        AND has_database_privilege(r.oid, $2, 'TEMP') AS enters
    FROM pg_authid r WHERE rolname = $1`,
    [spec.role_name, spec.database_name],
  );
  const [found] = rows;
  if (found === undefined || found.password !== verifier || !found.enters) return false;
  const expected = Object.entries(settingsOf(spec)).map(([setting, value]) => `0 ${setting}=${value}`);
  return found.settings.toSorted().join() === expected.toSorted().join();
}

export async function setConnectionLimit(client: Client, spec: DatabaseSpec, more: number): Promise<void> {
  await client.query(`ALTER ROLE ${name(spec.role_name)} CONNECTION LIMIT ${connectionLimitOf(spec) + more}`);
}

function connectionLimitOf({ access }: DatabaseSpec): number {
  return access === "closed" ? 0 : usualConnections;
}

function settingsOf({ access }: DatabaseSpec): Readonly<Record<string, string>> {
  return access === "open" ? settings : { ...settings, default_transaction_read_only: "on" };
}

/** Terminates the sessions of the role and of people's session roles, and bars the latter from logging in again. */
async function endSessions(client: Client, roleName: string): Promise<void> {
  const { rows } = await client.query<{ rolname: string }>(
    "SELECT rolname FROM pg_roles WHERE starts_with(rolname, $1 || '_t') AND rolcanlogin",
    [roleName],
  );
  for (const { rolname } of rows) await client.query(`ALTER ROLE ${name(rolname)} NOLOGIN`);
  await client.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = ANY($1)", [
    [roleName, ...rows.map(({ rolname }) => rolname)],
  ]);
}

/** Revokes public access to the server's maintenance databases. The lock serialises it: PostgreSQL lets one of two at once fail. */
async function closeServersDatabases(client: Client): Promise<void> {
  const { rowCount } = await client.query(
    `SELECT FROM pg_database WHERE datname IN ('postgres', 'template1') AND has_database_privilege('public', oid, 'CONNECT, TEMP')`,
  );
  if (rowCount === 0) return;
  await client.query("SELECT pg_advisory_lock(hashtext('berth closes the databases of the server'))");
  await client.query("REVOKE CONNECT, TEMP ON DATABASE postgres, template1 FROM PUBLIC");
}

async function createRole(client: Client, roleName: string): Promise<void> {
  const { rowCount } = await client.query("SELECT FROM pg_roles WHERE rolname = $1", [roleName]);
  if (rowCount === 0) await client.query(`CREATE ROLE ${name(roleName)} NOLOGIN`);
}
