import type { Client } from "pg";
import type { ServerAddress } from "../kit/server-address.ts";
import {
  DatabaseWorkFailed,
  type DatabaseSpec,
  type DumpOptions,
  type DumpSummary,
  type PostgresHost,
  type RestoreOptions,
  type RoleLogin,
} from "../ports/postgres-host.ts";
import { archiveAsText } from "./archive-as-text.ts";
import { applyBackupRole, backupRoleOf } from "./backup-role.ts";
import type { ClientPrograms } from "./client-program.ts";
import { withConnection, type ServerConnection } from "./connection.ts";
import { countDatabase, dumpDatabase } from "./dump.ts";
import { endSession } from "./end-session.ts";
import { applyDatabase, applySchema, dropDatabase, listDatabases } from "./grants.ts";
import { applyReaderRole, readerRoleOf, revokeReaderRights } from "./reader-role.ts";
import { restoreDatabase } from "./restore.ts";
import { applyRole, resetSettings, setConnectionLimit } from "./role.ts";
import { closeSessionRole, createSessionRole, dropRole, handOverOwned } from "./session-role.ts";
import { failureOfQuery } from "./work-failure.ts";
import { setWritable } from "./writable.ts";

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
  "ensure" | "observe" | "hasProcess" | "tlsOf" | "stop" | "destroy" | "list" | "limitSession"
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
  await asSuperuser(server, async (client) => {
    await applyRole(client, spec, verifier);
    await revokeReaderRights(client, readerRoleOf(spec));
  });
  await makeDatabase(server, spec, spec.database_name);
  await asSuperuser(server, (client) => setWritable(client, spec.database_name, true));
}

function asSuperuser<T>(server: ProjectServer, work: (client: Client) => Promise<T>, database?: string): Promise<T> {
  return server.superuser(database).then((connection) => withConnection(connection, work));
}

async function makeDatabase(server: ProjectServer, { role_name }: DatabaseSpec, database: string): Promise<void> {
  await asSuperuser(server, (client) => applyDatabase(client, { database, role: role_name, owner: server.owner }));
  await asSuperuser(server, (client) => applySchema(client, role_name), database);
}

async function createDatabase(server: ProjectServer, spec: DatabaseSpec, name: string): Promise<void> {
  refuseOwn(spec, name);
  await makeDatabase(server, spec, name);
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

/** Returns a role's login for client programs. */
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
