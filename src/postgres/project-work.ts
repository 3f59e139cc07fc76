import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { escapeIdentifier as name, type Client, escapeLiteral as text } from "pg";
import { start } from "../kit/exec.ts";
import type { ServerAddress } from "../kit/server-address.ts";
import {
  DatabaseWorkFailed,
  type DatabaseSpec,
  type DumpOptions,
  type DumpSummary,
  type PostgresHost,
  type RestoreOptions,
  type RoleLogin,
  type StatementsQuery,
} from "../ports/postgres-host.ts";
import { checkedContent, clientCommand, endOf, halt, type ClientPrograms, type Login } from "./client-program.ts";
import { withConnection, type ServerConnection } from "./connection.ts";
import { countDatabase, dumpDatabase } from "./dump.ts";
import { applyDatabase, applySchema, dropDatabase, listDatabases } from "./grants.ts";
import { applyReaderRole, readerRoleOf } from "./reader-role.ts";
import { applyRole, resetSettings, setConnectionLimit } from "./role.ts";
import { readStatements } from "./statements.ts";
import { closeSessionRole, createSessionRole, dropRole, handOverOwned } from "./session-role.ts";
import { failureOfProgram, failureOfQuery } from "./work-failure.ts";
import { scramVerifier } from "./scram.ts";

/** A server that holds one project's databases, possibly among those of other projects. */
export interface ProjectServer {
  /** Returns the superuser's login, which holds a secret. Rejects when there is no server. */
  superuser(database?: string): Promise<ServerConnection>;
  /** Returns the folder of the server's Unix socket, for client programs. */
  socketAddress(): Promise<ServerAddress>;
  programs(): Promise<ClientPrograms>;
  /** Returns the password of an additional role; the project's owner must not be able to derive it from what they know. */
  passwordOf(kind: "backup" | "reader"): string;
  /** The role that owns the project's databases on a shared server; null when the whole server is the project's. */
  readonly owner: string | null;
}

/** The operations on a project's databases, which are the same wherever the server runs. */
export type ProjectWork = Omit<
  PostgresHost,
  | "ensure"
  | "observe"
  | "hasProcess"
  | "isReplaced"
  | "tlsOf"
  | "history"
  | "stop"
  | "destroy"
  | "list"
  | "limitSession"
>;

export function projectWork(serverOf: (spec: DatabaseSpec) => ProjectServer): ProjectWork {
  const on =
    <Given extends unknown[], Result>(
      work: (server: ProjectServer, spec: DatabaseSpec, ...given: Given) => Promise<Result>,
    ) =>
    async (spec: DatabaseSpec, ...given: Given): Promise<Result> =>
      work(serverOf(spec), spec, ...given);
  return {
    createDatabase: on(createDatabase),
    setWritable: on((server, _, name: string, isWritable: boolean) =>
      asSuperuser(server, async (client) => {
        await requireOwn(client, server, name);
        await setWritable(client, name, isWritable);
      }),
    ),
    dropDatabase: on(removeDatabase),
    endSession: on((server, spec, processId: number) =>
      asSuperuser(server, (client) => endSession(client, spec.role_name, processId)),
    ),
    readerLogin: on(readerLogin),
    statements: on(async (server, spec, query: StatementsQuery) => {
      const mayCreate = server.owner === null;
      return asSuperuser(server, (client) => readStatements(client, spec, { ...query, mayCreate }));
    }),
    openSessionRole: on((server, spec, login: RoleLogin) =>
      asSuperuser(server, (client) => createSessionRole(client, spec, login)),
    ),
    dropSessionRole: on(dropSessionRole),
    listDatabases: on((server) => asSuperuser(server, (client) => listDatabases(client, server.owner))),
    dump: on(dumpOwn),
    restore: on((server, spec, name: string, restore: RestoreOptions) =>
      restoreInto(server, spec, { name, ...restore }),
    ),
    archiveAsText: on(async (server, spec, given: RestoreOptions) =>
      archiveAsText(await server.programs(), await loginAt(server, spec, spec.database_name), given),
    ),
    countRows: on(async (server, spec, name: string, count: Parameters<PostgresHost["countRows"]>[2]) =>
      countDatabase(await backupLogin(server, spec, name), count),
    ),
  };
}

/** Creates or updates the project's role, database and grants as `spec` says. Idempotent. */
export async function applyProject(server: ProjectServer, spec: DatabaseSpec, verifier: string): Promise<void> {
  const { role_name: role, database_name: database } = spec;
  await asSuperuser(server, async (client) => {
    await applyRole(client, spec, verifier);
    await applyDatabase(client, { database, role, owner: server.owner });
    await setWritable(client, database, true);
  });
  await asSuperuser(server, (client) => applySchema(client, role), database);
}

function asSuperuser<T>(server: ProjectServer, work: (client: Client) => Promise<T>, database?: string): Promise<T> {
  return server.superuser(database).then((connection) => withConnection(connection, work));
}

async function createDatabase(server: ProjectServer, spec: DatabaseSpec, database: string): Promise<void> {
  refuseOwn(spec, database);
  const { role_name: role } = spec;
  await asSuperuser(server, (client) => applyDatabase(client, { database, role, owner: server.owner }));
  await asSuperuser(server, (client) => applySchema(client, role), database);
}

async function removeDatabase(server: ProjectServer, spec: DatabaseSpec, name: string): Promise<void> {
  refuseOwn(spec, name);
  await asSuperuser(server, (client) => dropDatabase(client, name, server.owner));
}

async function dumpOwn(server: ProjectServer, spec: DatabaseSpec, dump: DumpOptions): Promise<DumpSummary> {
  const login = await backupLogin(server, spec, spec.database_name);
  return dumpDatabase(await server.programs(), login, dump);
}

const restoreConnections = 2;

async function restoreInto(
  server: ProjectServer,
  spec: DatabaseSpec,
  { name, ...restore }: RestoreOptions & { name: string },
): Promise<void> {
  refuseOwn(spec, name);
  const login = await loginAt(server, spec, name);
  const programs = await server.programs();
  const limit = (more: number) => asSuperuser(server, (client) => setConnectionLimit(client, spec, more));
  await asSuperuser(server, (client) => resetSettings(client, spec));
  // Raise the limit, so that an application that uses all of its connections can't block its own restore.
  await limit(restoreConnections);
  try {
    await restoreDatabase(programs, login, restore);
  } finally {
    await limit(0);
  }
}

async function loginAt(
  server: ProjectServer,
  { role_name, password }: RoleLogin,
  database: string,
): Promise<ServerConnection> {
  return { ...(await server.socketAddress()), user: role_name, password, database };
}

async function backupLogin(server: ProjectServer, spec: DatabaseSpec, database: string): Promise<ServerConnection> {
  const password = server.passwordOf("backup");
  try {
    await asSuperuser(server, (client) => applyBackupRole(client, spec, password));
  } catch (error) {
    throw failureOfQuery(error as Error);
  }
  return loginAt(server, { role_name: backupRoleOf(spec), password }, database);
}

async function readerLogin(server: ProjectServer, spec: DatabaseSpec, database: string): Promise<RoleLogin> {
  const password = server.passwordOf("reader");
  try {
    await asSuperuser(server, (client) => requireOwn(client, server, database));
    await asSuperuser(server, (client) => applyReaderRole(client, spec, password), database);
  } catch (error) {
    throw failureOfQuery(error as Error);
  }
  return { role_name: readerRoleOf(spec), password };
}

/** A name that came from a request must lead the superuser to no other database, whatever the caller has checked. */
async function requireOwn(client: Client, { owner }: ProjectServer, database: string): Promise<void> {
  if (!(await listDatabases(client, owner)).includes(database))
    throw new DatabaseWorkFailed("refused", `The project has no database ${database}.`);
}

async function dropSessionRole(server: ProjectServer, spec: DatabaseSpec, roleName: string): Promise<void> {
  const databases = await asSuperuser(server, (client) => closeSessionRole(client, roleName));
  if (databases === "missing") return;
  for (const database of databases)
    await asSuperuser(server, (client) => handOverOwned(client, spec, roleName), database);
  await asSuperuser(server, (client) => dropRole(client, roleName));
}

function refuseOwn(spec: DatabaseSpec, name: string): void {
  if (name === spec.database_name || ["postgres", "template0", "template1"].includes(name))
    throw new Error(`${name} is not a further database of ${spec.id}`);
}

/** Converts a pg_dump archive to SQL text, without a connection. */
function archiveAsText(
  programs: ClientPrograms,
  login: Login,
  { archive, signal }: { readonly archive: Readable; readonly signal: AbortSignal },
): Readable {
  const args = ["--file=-", "--no-owner", "--no-acl"];
  const { command, env } = clientCommand(programs, { program: "pg_restore", args, login });
  const child = start(command, { env, ownGroup: true });
  const ended = endOf(child, signal);
  const feeding = pipeline(archive, child.stdin).then(
    () => undefined,
    (error: unknown) => error,
  );
  // The reader must not see the end of the text before the archive has been read and pg_restore has succeeded.
  const check = async () => {
    const { exitCode, stderr } = await ended;
    if (exitCode !== 0) throw failureOfProgram("pg_restore", stderr);
    const fault = await feeding;
    // pg_restore leaves the last bytes of an archive unread, so a closed pipe is no error.
    if (fault !== undefined && !isClosedByReader(fault)) throw fault as Error;
  };
  return Readable.from(checkedContent(child.stdout, check), { objectMode: false });
}

async function endSession(client: Client, role: string, processId: number): Promise<void> {
  const statement = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = $1 AND usename = $2";
  await client.query(statement, [processId, role]);
}

// A session that is logging in has read its settings but is not in the list of sessions yet.
const loginMs = 500;

/** Lets sessions write to the database again, or ends them, rolled back, and makes those that start from now on read-only. */
async function setWritable(client: Client, database: string, isWritable: boolean): Promise<void> {
  const change = isWritable ? "RESET default_transaction_read_only" : "SET default_transaction_read_only = on";
  await client.query(`ALTER DATABASE ${name(database)} ${change}`);
  if (isWritable) return;
  const { rows } = await client.query<{ now: string }>("SELECT clock_timestamp()::text AS now");
  for (const pauseMs of [0, loginMs]) {
    await sleep(pauseMs);
    await client.query(
      "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = $1 AND pid <> pg_backend_pid() AND backend_start <= $2",
      [database, rows[0]?.now],
    );
  }
}

// The role's settings protect against an application's accidents and would abort a restore; its owner may add more at any time.
const session = [
  "default_transaction_read_only=off",
  "statement_timeout=0",
  "lock_timeout=0",
  "idle_in_transaction_session_timeout=0",
  "idle_session_timeout=0",
  "local_preload_libraries=",
  "role=none",
]
  .map((setting) => `-c ${setting}`)
  .join(" ");

/** Restores in one transaction. Logs in as the project's own role: a superuser would run code that the archive's owner wrote. */
async function restoreDatabase(
  programs: ClientPrograms,
  login: Login,
  { archive, signal }: RestoreOptions,
): Promise<void> {
  const args = [
    `--dbname=${login.database}`,
    "--single-transaction",
    "--exit-on-error",
    "--no-owner",
    "--no-acl",
    "--no-password",
  ];
  const { command, env } = clientCommand(programs, { program: "pg_restore", args, login, options: session });
  const child = start(command, { env, ownGroup: true });
  const ended = endOf(child, signal);
  child.stdout.resume();
  // If the archive breaks off, kill pg_restore before its input ends: a truncated archive must not look complete.
  const feeding = pipeline(archive, child.stdin).then(
    () => undefined,
    (error: unknown) => {
      if (!isClosedByReader(error)) halt(child);
      return error;
    },
  );
  const [{ exitCode, stderr }, fault] = await Promise.all([ended, feeding.finally(() => archive.destroy())]);
  signal.throwIfAborted();
  if (fault !== undefined && !isClosedByReader(fault)) throw fault as Error;
  if (exitCode !== 0) throw failureOfProgram("pg_restore", stderr);
}

/** Returns whether writing to a program failed because it exited first; its own error explains why. */
function isClosedByReader(error: unknown): boolean {
  return ["EPIPE", "ECONNRESET", "ERR_STREAM_PREMATURE_CLOSE"].includes((error as NodeJS.ErrnoException).code ?? "");
}

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

function backupRoleOf(spec: DatabaseSpec): string {
  return `${spec.role_name}_backup`;
}

/**
 * Creates or repairs the backup role with this password: a member of the project's role that bypasses row security and is no superuser.
 * Anything the project's owner tricks it into doing, the owner could do alone. Idempotent.
 */
async function applyBackupRole(client: Client, spec: DatabaseSpec, password: string): Promise<void> {
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
