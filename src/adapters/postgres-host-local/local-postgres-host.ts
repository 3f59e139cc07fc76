import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import type { Client } from "pg";
import type {
  DatabaseEndpoint,
  DatabaseObservation,
  DatabaseSpec,
  DumpOptions,
  DumpSummary,
  PostgresHost,
  RestoreOptions,
  RoleLogin,
} from "../../ports/postgres-host.ts";
import { applyBackupRole, backupRoleOf } from "./backup-role.ts";
import { choosePort, readPort, usualPorts, type PortRange } from "./choose-port.ts";
import type { ControlGroups } from "./control-groups.ts";
import type { ClientPrograms } from "./client-program.ts";
import { countDatabase, dumpDatabase } from "./dump.ts";
import { withFolderLock } from "./folder-lock.ts";
import { applyDatabase, applySchema, dropDatabase, listDatabases, measureDatabases } from "./grants.ts";
import { endSession } from "./end-session.ts";
import { ensureFolder, ensureSecret, instanceFiles, writeWhole } from "./instance-files.ts";
import { archiveAsText } from "./archive-as-text.ts";
import { applyReaderRole, readerRoleOf } from "./reader-role.ts";
import { restoreDatabase } from "./restore.ts";
import { applyRole, grantsVersion, isRoleIntact, resetSettings, setConnectionLimit } from "./role.ts";
import { runFolder } from "../../kit/run-folder.ts";
import { closeSessionRole, createSessionRole, dropRole, handOverOwned } from "./session-role.ts";
import { scramVerifier } from "./scram.ts";
import { chooseConfinement, createLocalServer, type LocalServer } from "./server.ts";
import { PortTaken } from "./start-server.ts";
import { withConnection, type ServerConnection } from "./superuser-connection.ts";
import { failureOfQuery } from "./work-failure.ts";

export interface LocalPostgresHostOptions {
  /** The folder with `initdb` and `postgres`, 15 or later. */
  readonly binDir: string;
  /** The bubblewrap program; null where there is none, which is for ordinary users only. */
  readonly bwrap: string | null;
  /** Holds a folder per instance. */
  readonly dir: string;
  /** As root: a project's instance runs as user `uidBase + project_number`. Null: as the current, ordinary user. */
  readonly uidBase: number | null;
  readonly ports?: PortRange;
  /** What each instance may use; left out, there is no limit. */
  readonly groups?: ControlGroups;
  /** Where the short folder for sockets is made; default `/run` for root and `/tmp` for others. */
  readonly runBase?: string;
  /** The client programs; default: those beside the server's. Null: there are none, and dumps say so. */
  readonly pgDump?: string | null;
  readonly pgRestore?: string | null;
}

/** A running instance, where it listens and how the platform enters it. */
interface Instance {
  readonly server: LocalServer;
  readonly dir: string;
  readonly uid: number | null;
  readonly port: number;
  readonly socketDir: string;
}

const portAttempts = 5;
const restoreConnections = 2;
const ownDatabases = ["postgres", "template0", "template1"];

/** PostgreSQL instances on this machine, one for each project, each as an unprivileged user in a sandbox of its own. */
export function createLocalPostgresHost(options: LocalPostgresHostOptions): PostgresHost {
  return {
    ensure: (spec, signal) => ensure(options, spec, signal),
    observe: (spec) => observe(options, spec),
    hasProcess: (id) => existingInstance(options, id)?.server.hasProcess() ?? false,
    stop: (id) => stop(options, id),
    destroy: (id) => destroy(options, id),
    list: async () => listInstances(options.dir),
    createDatabase: (spec, name) => createDatabase(options, spec, name),
    dropDatabase: (spec, name) => removeDatabase(options, spec, name),
    endSession: (spec, processId) => endRoleSession(options, spec, processId),
    readerLogin: (spec, database) => readerLogin(runningInstance(options, spec.id), spec, database),
    openSessionRole: (spec, login) =>
      withConnection(runningInstance(options, spec.id).server.superuserConnection(), (client) =>
        createSessionRole(client, spec, login),
      ),
    dropSessionRole: (spec, roleName) => dropSessionRole(runningInstance(options, spec.id), spec, roleName),
    listDatabases: (spec) => databasesOf(options, spec),
    dump: (spec, dump) => dumpOwn(options, spec, dump),
    restore: (spec, name, restore) => restoreInto(options, spec, { name, ...restore }),
    async archiveAsText(spec, given) {
      const instance = runningInstance(options, spec.id);
      return archiveAsText(await clientPrograms(options, instance), instance.server.superuserConnection(), given);
    },
    countRows: async (spec, name, count) =>
      countDatabase(await backupLogin(runningInstance(options, spec.id), spec, name), count),
  };
}

async function ensure(
  options: LocalPostgresHostOptions,
  spec: DatabaseSpec,
  signal?: AbortSignal,
): Promise<DatabaseEndpoint> {
  const dir = instanceFolder(options, spec.id);
  ensureFolder(options.dir, 0o700);
  ensureFolder(dir, 0o700);
  return withFolderLock(join(dir, "ensure-lock"), async () => {
    const instance = await ensureRunning(options, spec, signal);
    const version = (await logInAsRole(instance, spec)) ?? (await applyAll(instance, spec));
    return endpointOf(instance, version);
  });
}

async function ensureRunning(
  options: LocalPostgresHostOptions,
  spec: DatabaseSpec,
  signal?: AbortSignal,
): Promise<Instance> {
  const uid = options.uidBase === null ? null : options.uidBase + spec.project_number;
  let taken: number | undefined;
  for (let attempt = 1; attempt <= portAttempts; attempt += 1) {
    const port = await choosePort(options.dir, spec.id, spec.project_number, {
      range: options.ports ?? usualPorts,
      except: taken,
    });
    const instance = instanceOf(options, spec.id, { port, uid });
    try {
      await instance.server.ensure(signal);
      return instance;
    } catch (error) {
      if (!(error instanceof PortTaken)) throw error;
      taken = port;
    }
  }
  throw new Error(`the database ${spec.id} found no free port in ${portAttempts} attempts`);
}

/** The server's version when everything of `spec` is in place and its role gets in; undefined when there is work to do. */
async function logInAsRole(instance: Instance, spec: DatabaseSpec): Promise<string | undefined> {
  const { server } = instance;
  if (!(await withConnection(server.superuserConnection(), (client) => isIntact(client, instance, spec))))
    return undefined;
  return versionSeenByRole(instance, spec).catch((error: { code?: string }) => {
    // The role has all of its connections, or may have none: it is as it ought to be.
    if (error.code === "53300") return versionSeenByPlatform(instance);
    return undefined;
  });
}

async function applyAll(instance: Instance, spec: DatabaseSpec): Promise<string> {
  const { server, dir } = instance;
  const verifier = scramVerifier(spec.password);
  await withConnection(server.superuserConnection(), async (client) => {
    await applyRole(client, spec, verifier);
    await applyDatabase(client, spec.database_name, spec.role_name);
  });
  await withConnection(server.superuserConnection(spec.database_name), (client) => applySchema(client, spec.role_name));
  const version = await versionSeenByRole(instance, spec).catch((error: { code?: string }) => {
    if (error.code === "53300") return versionSeenByPlatform(instance);
    throw error;
  });
  writeWhole(join(dir, "applied"), `${fingerprint(spec)}\n${verifier}`);
  return version;
}

/** Compares the role with what was applied last, which is written down beside the data. */
async function isIntact(client: Client, { dir }: Instance, spec: DatabaseSpec): Promise<boolean> {
  const applied = join(dir, "applied");
  const [known, verifier] = existsSync(applied) ? readFileSync(applied, "utf8").split("\n") : [];
  return known === fingerprint(spec) && verifier !== undefined && isRoleIntact(client, spec, verifier);
}

async function observe(options: LocalPostgresHostOptions, spec: DatabaseSpec): Promise<DatabaseObservation> {
  const instance = existingInstance(options, spec.id);
  if (instance === undefined) return { state: "absent" };
  const state = await instance.server.observe();
  if (state !== "running") return { state };
  return withConnection(instance.server.superuserConnection(), async (client) => {
    const usage = await measureDatabases(client, spec.database_name);
    if (usage === undefined) return { state: "stopped" };
    const { size_bytes, connections, compacting } = usage;
    const intact = await isIntact(client, instance, spec);
    const endpoint = endpointOf(instance, await readVersion(client));
    return { state: "running", endpoint, size_bytes, connections, compacting, intact };
  });
}

async function stop(options: LocalPostgresHostOptions, id: string): Promise<void> {
  await existingInstance(options, id)?.server.stop();
}

async function destroy(options: LocalPostgresHostOptions, id: string): Promise<void> {
  const dir = instanceFolder(options, id);
  await stop(options, id);
  rmSync(dir, { recursive: true, force: true });
  rmSync(join(runFolder(options.dir, options.runBase), id), { recursive: true, force: true });
}

async function createDatabase(options: LocalPostgresHostOptions, spec: DatabaseSpec, name: string): Promise<void> {
  refuseOwn(spec, name);
  const { server } = runningInstance(options, spec.id);
  await withConnection(server.superuserConnection(), (client) => applyDatabase(client, name, spec.role_name));
  await withConnection(server.superuserConnection(name), (client) => applySchema(client, spec.role_name));
}

async function removeDatabase(options: LocalPostgresHostOptions, spec: DatabaseSpec, name: string): Promise<void> {
  refuseOwn(spec, name);
  const { server } = runningInstance(options, spec.id);
  await withConnection(server.superuserConnection(), (client) => dropDatabase(client, name));
}

async function databasesOf(options: LocalPostgresHostOptions, spec: DatabaseSpec): Promise<readonly string[]> {
  const { server } = runningInstance(options, spec.id);
  const names = await withConnection(server.superuserConnection(), listDatabases);
  return names.filter((name) => !ownDatabases.includes(name));
}

async function dumpOwn(options: LocalPostgresHostOptions, spec: DatabaseSpec, dump: DumpOptions): Promise<DumpSummary> {
  const instance = runningInstance(options, spec.id);
  const login = await backupLogin(instance, spec, spec.database_name);
  return dumpDatabase(await clientPrograms(options, instance), login, dump);
}

async function restoreInto(
  options: LocalPostgresHostOptions,
  spec: DatabaseSpec,
  { name, ...restore }: RestoreOptions & { name: string },
): Promise<void> {
  refuseOwn(spec, name);
  const instance = runningInstance(options, spec.id);
  const { server } = instance;
  const { role_name: user, password } = spec;
  const login = { ...server.superuserConnection(name), user, password };
  const programs = await clientPrograms(options, instance);
  const limit = (more: number) =>
    withConnection(server.superuserConnection(), (client) => setConnectionLimit(client, spec, more));
  await withConnection(server.superuserConnection(), (client) => resetSettings(client, spec));
  // An application that holds all of its connections must not stand in the way of its own restore.
  await limit(restoreConnections);
  try {
    await restoreDatabase(programs, login, restore);
  } finally {
    await limit(0);
  }
}

async function backupLogin(instance: Instance, spec: DatabaseSpec, database: string): Promise<ServerConnection> {
  const { server, dir } = instance;
  const password = ensureSecret(join(dir, "backup-secret"));
  try {
    await withConnection(server.superuserConnection(), (client) => applyBackupRole(client, spec, password));
  } catch (error) {
    throw failureOfQuery(error as Error);
  }
  return { ...server.superuserConnection(database), user: backupRoleOf(spec), password };
}

async function dropSessionRole({ server }: Instance, spec: DatabaseSpec, roleName: string): Promise<void> {
  const onServer = <T>(work: (client: Client) => Promise<T>) => withConnection(server.superuserConnection(), work);
  const databases = await onServer((client) => closeSessionRole(client, roleName));
  if (databases === "missing") return;
  for (const database of databases)
    await withConnection(server.superuserConnection(database), (client) => handOverOwned(client, spec, roleName));
  await onServer((client) => dropRole(client, roleName));
}

async function readerLogin({ server, dir }: Instance, spec: DatabaseSpec, database: string): Promise<RoleLogin> {
  const password = ensureSecret(join(dir, "reader-secret"));
  try {
    await withConnection(server.superuserConnection(), (client) =>
      applyReaderRole(client, spec, { password, database }),
    );
  } catch (error) {
    throw failureOfQuery(error as Error);
  }
  return { role_name: readerRoleOf(spec), password };
}

async function clientPrograms(options: LocalPostgresHostOptions, { dir, uid }: Instance): Promise<ClientPrograms> {
  const { binDir, bwrap, pgDump = join(binDir, "pg_dump"), pgRestore = join(binDir, "pg_restore") } = options;
  return { dir, confinement: await chooseConfinement({ binDir, bwrap, uid }), pgDump, pgRestore };
}

async function endRoleSession(options: LocalPostgresHostOptions, spec: DatabaseSpec, processId: number): Promise<void> {
  const { server } = runningInstance(options, spec.id);
  await withConnection(server.superuserConnection(), (client) => endSession(client, spec.role_name, processId));
}

function refuseOwn(spec: DatabaseSpec, name: string): void {
  if (name === spec.database_name || ownDatabases.includes(name))
    throw new Error(`${name} is not a further database of ${spec.id}`);
}

function listInstances(dir: string): string[] {
  return existsSync(dir) ? readdirSync(dir).filter((id) => isId(id) && statSync(join(dir, id)).isDirectory()) : [];
}

function instanceOf(
  options: LocalPostgresHostOptions,
  id: string,
  placement: { port: number; uid: number | null },
): Instance {
  const { binDir, bwrap, groups } = options;
  const dir = instanceFolder(options, id);
  const socketDir = join(runFolder(options.dir, options.runBase), id);
  const group = groups === undefined ? {} : { group: groups.of(id) };
  const server = createLocalServer({ binDir, bwrap, dir, socketDir, socketMode: "shared", ...group, ...placement });
  return { server, dir, ...placement, socketDir };
}

/** The instance as it was made: its port is remembered and its user owns the data. */
function existingInstance(options: LocalPostgresHostOptions, id: string): Instance | undefined {
  const { data } = instanceFiles(instanceFolder(options, id));
  const port = readPort(options.dir, id);
  if (port === undefined || !existsSync(data)) return undefined;
  return instanceOf(options, id, { port, uid: options.uidBase === null ? null : statSync(data).uid });
}

function runningInstance(options: LocalPostgresHostOptions, id: string): Instance {
  const instance = existingInstance(options, id);
  if (instance === undefined) throw new Error(`there is no database ${id} on this machine`);
  return instance;
}

function instanceFolder(options: LocalPostgresHostOptions, id: string): string {
  if (!isId(id)) throw new Error(`not the id of a database: ${id}`);
  return join(options.dir, id);
}

function isId(text: string): boolean {
  return /^dbs_[0-9a-z]{1,40}$/.test(text);
}

function endpointOf({ port, socketDir }: Instance, engineVersion: string): DatabaseEndpoint {
  return { host: socketDir, port, engine_version: engineVersion };
}

function versionSeenByRole(instance: Instance, spec: DatabaseSpec): Promise<string> {
  const { host, port } = instance.server.superuserConnection();
  return withConnection(
    { host, port, user: spec.role_name, password: spec.password, database: spec.database_name },
    readVersion,
  );
}

function versionSeenByPlatform(instance: Instance): Promise<string> {
  return withConnection(instance.server.superuserConnection(), readVersion);
}

async function readVersion(client: { query(sql: string): Promise<{ rows: { version: string }[] }> }): Promise<string> {
  const { rows } = await client.query("SELECT split_part(current_setting('server_version'), ' ', 1) AS version");
  return rows[0]?.version ?? "unknown";
}

function fingerprint(spec: DatabaseSpec): string {
  const { role_name, database_name, password, access } = spec;
  return createHash("sha256")
    .update(JSON.stringify([grantsVersion, role_name, database_name, password, access]))
    .digest("hex");
}
