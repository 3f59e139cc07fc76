import { escapeIdentifier as name, escapeLiteral as text } from "pg";
import type { Client } from "pg";
import type { DatabaseSpec } from "../../ports/postgres-host.ts";
import { dropDatabase, listDatabases } from "../../postgres/grants.ts";
import { dropRole } from "../../postgres/session-role.ts";

const prefix = "berth_";

/**
 * Returns the name of the NOLOGIN role that owns a project's databases. It records on the server which databases belong to which project;
 * its comment names the platform's login and the project's role, so that two platforms can share a server.
 */
export const ownerOf = (id: string): string => `${prefix}${id}`;

const noteOf = (admin: string, roleName: string): string => `berth:${admin}:${roleName}`;

/** Creates the owner role if it is missing, one caller per project at a time. Throws if the role belongs to another platform. */
export async function ensureOwner(client: Client, { id, role_name }: DatabaseSpec): Promise<void> {
  await client.query("SELECT pg_advisory_lock(hashtext($1))", [`berth ${id}`]);
  const note = noteOf(await adminOf(client), role_name);
  const found = await findNote(client, id);
  if (found === note) return;
  if (found !== undefined) throw new Error(`the database ${id} belongs to another platform on this server: ${found}`);
  const owner = name(ownerOf(id));
  await client.query(`BEGIN; CREATE ROLE ${owner} NOLOGIN; COMMENT ON ROLE ${owner} IS ${text(note)}; COMMIT`);
}

/** Returns the owner role's comment: undefined if the role does not exist, empty if it has no comment. */
async function findNote(client: Client, id: string): Promise<string | undefined> {
  const { rows } = await client.query<{ note: string | null }>(
    "SELECT shobj_description(oid, 'pg_authid') AS note FROM pg_roles WHERE rolname = $1",
    [ownerOf(id)],
  );
  const [found] = rows;
  return found === undefined ? undefined : (found.note ?? "");
}

/** Returns the ids of all project databases that this platform created on the server. */
export async function listOwned(client: Client): Promise<string[]> {
  const { rows } = await client.query<{ id: string }>(
    `SELECT substr(rolname, ${prefix.length + 1}) AS id FROM pg_roles
    WHERE starts_with(rolname, '${prefix}dbs_') AND starts_with(shobj_description(oid, 'pg_authid'), $1) ORDER BY 1`,
    [noteOf(await adminOf(client), "")],
  );
  return rows.map(({ id }) => id);
}

/** Returns whether the project's role may log in; undefined if the project has nothing on the server. */
export async function isOpen(client: Client, { id, role_name }: DatabaseSpec): Promise<boolean | undefined> {
  if ((await findNote(client, id)) === undefined) return undefined;
  const { rows } = await client.query<{ open: boolean }>(
    "SELECT rolcanlogin AS open FROM pg_roles WHERE rolname = $1",
    [role_name],
  );
  return rows[0]?.open ?? false;
}

/** Forbids logins of all the project's roles and terminates their sessions. Idempotent. */
export async function closeProject(client: Client, id: string): Promise<void> {
  const roles = await rolesOf(client, id);
  for (const role of roles) await client.query(`ALTER ROLE ${name(role)} NOLOGIN`);
  await client.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = ANY($1)", [roles]);
}

/** Drops the project's databases, then its roles, and last the owner role, which identifies the others. Idempotent. */
export async function destroyProject(client: Client, id: string): Promise<void> {
  if (!(await isOurs(client, id))) return;
  await closeProject(client, id);
  const owner = ownerOf(id);
  for (const database of await listDatabases(client, owner)) await dropDatabase(client, database, owner);
  for (const role of await rolesOf(client, id)) await dropRole(client, role);
  await dropRole(client, owner);
}

async function isOurs(client: Client, id: string): Promise<boolean> {
  return (await findNote(client, id))?.startsWith(noteOf(await adminOf(client), "")) ?? false;
}

/** Returns the project's roles that can log in. The project's own role comes last, because the others are its members. */
async function rolesOf(client: Client, id: string): Promise<string[]> {
  if (!(await isOurs(client, id))) return [];
  const note = (await findNote(client, id)) ?? "";
  const start = noteOf(await adminOf(client), "");
  const { rows } = await client.query<{ rolname: string }>(
    `SELECT rolname FROM pg_roles
    WHERE rolname = $1 OR rolname IN ($1 || '_backup', $1 || '_reader') OR starts_with(rolname, $1 || '_t') ORDER BY rolname DESC`,
    [note.slice(start.length)],
  );
  return rows.map(({ rolname }) => rolname);
}

async function adminOf(client: Client): Promise<string> {
  const { rows } = await client.query<{ admin: string }>("SELECT session_user::text AS admin");
  return rows[0]?.admin ?? "";
}
