import { createHash } from "node:crypto";
import { existsSync, readFileSync, readdirSync, rmSync, statSync } from "node:fs";
import { createServer } from "node:net";
import { basename, join } from "node:path";
import type { Client } from "pg";
import { missingDatabase } from "../../kit/part-missing.ts";
import { runFolder } from "../../kit/run-folder.ts";
import type {
  DatabaseHistory,
  DatabaseEndpoint,
  DatabaseObservation,
  DatabaseSpec,
  PostgresHost,
} from "../../ports/postgres-host.ts";
import { chooseConfinement } from "../../postgres/confinement.ts";
import { withConnection } from "../../postgres/connection.ts";
import { measureDatabases } from "../../postgres/grants.ts";
import { applyProject, projectWork, type ProjectServer } from "../../postgres/project-work.ts";
import { readingMemoryBytes } from "../../postgres/reader-role.ts";
import { grantsVersion, isRoleIntact } from "../../postgres/role.ts";
import { scramVerifier } from "../../postgres/scram.ts";
import { limitStatementTexts } from "../../postgres/statements.ts";
import { readVersion, versionSeenByRole } from "../../postgres/version.ts";
import type { ControlGroups } from "./control-groups.ts";
import { withFolderLock } from "./folder-lock.ts";
import { createLocalHistory } from "./history.ts";
import { isInitialised } from "./initialise.ts";
import { ensureFolder, ensureSecret, instanceFiles, writeWhole } from "./instance-files.ts";
import { createLocalServer, type Instance } from "./server.ts";
import { startAtFreePort } from "./start-server.ts";

export interface LocalPostgresHostOptions {
  /** The folder with `initdb` and `postgres`, 15 or later. */
  readonly binDir: string;
  /** The bubblewrap program; null where it is missing, which is allowed only for ordinary users. */
  readonly bwrap: string | null;
  /** The folder that contains a folder for each instance. */
  readonly dir: string;
  /** For root: a project's instance runs as user `uidBase + project_number`. Null: as the current, ordinary user. */
  readonly uidBase: number | null;
  readonly ports?: PortRange;
  /** The limits of each instance; if missing, there are none. */
  readonly groups?: ControlGroups;
  /** The parent of the short folder for sockets; default `/run` for root and `/tmp` for others. */
  readonly runBase?: string;
  /** The client programs; default: those next to the server's. Null: there are none, and dumps fail with that reason. */
  readonly pgDump?: string | null;
  readonly pgRestore?: string | null;
}

/** Runs PostgreSQL instances on this machine, one for each project, each as an unprivileged user in a sandbox of its own. */
export function createLocalPostgresHost(options: LocalPostgresHostOptions): PostgresHost {
  const history: DatabaseHistory = createLocalHistory({
    ...{ binDir: options.binDir, bwrap: options.bwrap, dir: options.dir },
    ...{ runBase: options.runBase, groups: options.groups },
    find: (id) => existingInstance(options, id),
    idOf: (instance) => basename(instance.dir),
    projectServer: (instance) => projectServer(options, instance),
    apply: (instance, spec) => applyAll(options, instance, spec),
    freePort: () => freePort(options.dir, options.ports ?? usualPorts),
    assignPort: ({ id, project_number }, except) =>
      choosePort(options.dir, id, project_number, { range: options.ports ?? usualPorts, except }),
    destroy: (id) => destroy(options, history, id),
  });
  return {
    ensure: (spec, signal) => ensure(options, spec, signal),
    observe: (spec) => observe(options, spec),
    hasProcess: (id) => existingInstance(options, id)?.server.hasProcess() ?? false,
    isReplaced: async (id) => (await existingInstance(options, id)?.server.isReplaced()) ?? false,
    tlsOf: () => null,
    history: () => history,
    stop: (id) => stop(options, history, id),
    destroy: (id) => destroy(options, history, id),
    list: async () =>
      existsSync(options.dir)
        ? readdirSync(options.dir).filter((id) => isId(id) && statSync(join(options.dir, id)).isDirectory())
        : [],
    async limitSession({ id }, processId) {
      await existingInstance(options, id)?.server.limitSession(processId, readingMemoryBytes);
      return async () => false;
    },
    ...projectWork((spec) => projectServer(options, runningInstance(options, spec.id))),
  };
}

function projectServer({ binDir, bwrap, ...options }: LocalPostgresHostOptions, instance: Instance): ProjectServer {
  const { server, dir, uid, port, socketDir } = instance;
  const { pgDump = join(binDir, "pg_dump"), pgRestore = join(binDir, "pg_restore") } = options;
  return {
    owner: null,
    superuser: async (database) => server.superuserConnection(database),
    socketAddress: async () => ({ host: socketDir, port }),
    programs: async () => ({
      ...{ confinement: await chooseConfinement({ binDir, bwrap, uid }), configDir: instanceFiles(dir).config },
      ...{ pgDump, pgRestore },
    }),
    passwordOf: (kind) => ensureSecret(join(dir, `${kind}-secret`)),
  };
}

async function ensure(
  options: LocalPostgresHostOptions,
  spec: DatabaseSpec,
  signal?: AbortSignal,
): Promise<DatabaseEndpoint> {
  const dir = instanceFolder(options, spec.id);
  if (spec.was_ready && !isInitialised(dir)) throw missingDatabase(spec.id);
  ensureFolder(options.dir, 0o700);
  ensureFolder(dir, 0o700);
  return withFolderLock(join(dir, "ensure-lock"), async () => {
    const instance = await ensureRunning(options, spec, signal);
    const version = (await logInAsRole(instance, spec)) ?? (await applyAll(options, instance, spec));
    return endpointOf(instance, version);
  });
}

async function ensureRunning(
  options: LocalPostgresHostOptions,
  spec: DatabaseSpec,
  signal?: AbortSignal,
): Promise<Instance> {
  const uid = options.uidBase === null ? null : options.uidBase + spec.project_number;
  const range = options.ports ?? usualPorts;
  const nextPort = (except?: number) => choosePort(options.dir, spec.id, spec.project_number, { range, except });
  return startAtFreePort(nextPort, async (port) => {
    const instance = instanceOf(options, spec.id, { port, uid });
    await instance.server.ensure(signal);
    return instance;
  });
}

/** Returns the server's version if everything in `spec` is applied and its role can log in; otherwise undefined. */
async function logInAsRole(instance: Instance, spec: DatabaseSpec): Promise<string | undefined> {
  const { server } = instance;
  if (!(await withConnection(server.superuserConnection(), (client) => isIntact(client, instance, spec))))
    return undefined;
  return versionSeenByRole(server.superuserConnection(), spec).catch(() => undefined);
}

async function applyAll(options: LocalPostgresHostOptions, instance: Instance, spec: DatabaseSpec): Promise<string> {
  const { dir } = instance;
  const verifier = scramVerifier(spec.password);
  await applyProject(projectServer(options, instance), spec, verifier);
  const version = await versionSeenByRole(instance.server.superuserConnection(), spec);
  writeWhole(join(dir, "applied"), `${fingerprint(spec)}\n${verifier}`);
  return version;
}

/** Returns whether the role is still as last applied, according to the record next to the data. */
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
    const usage = await measureDatabases(client, { database: spec.database_name, owner: null });
    if (usage === undefined) return { state: "stopped" };
    const { size_bytes, connections, compacting } = usage;
    await limitStatementTexts(client);
    const intact = await isIntact(client, instance, spec);
    const endpoint = endpointOf(instance, await readVersion(client));
    return { state: "running", endpoint, size_bytes, connections, compacting, intact };
  });
}

async function stop(options: LocalPostgresHostOptions, history: DatabaseHistory, id: string): Promise<void> {
  await history.discardRecovered(id);
  await history.discardClone(id);
  await existingInstance(options, id)?.server.stop();
}

async function destroy(options: LocalPostgresHostOptions, history: DatabaseHistory, id: string): Promise<void> {
  const dir = instanceFolder(options, id);
  await stop(options, history, id);
  rmSync(dir, { recursive: true, force: true });
  rmSync(join(runFolder(options.dir, options.runBase), id), { recursive: true, force: true });
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
  const server = createLocalServer({
    binDir,
    bwrap,
    dir,
    socketDir,
    socketMode: "shared",
    isArchived: true,
    ...group,
    ...placement,
  });
  return { server, dir, ...placement, socketDir };
}

/** Returns the instance as created: with its stored port, and as the user that owns its data. Undefined if it does not exist. */
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
  return /^db[sb]_[0-9a-z]{1,40}$/.test(text);
}

function endpointOf({ port, socketDir }: Instance, engineVersion: string): DatabaseEndpoint {
  return { host: socketDir, port, engine_version: engineVersion };
}

function fingerprint(spec: DatabaseSpec): string {
  const { role_name, database_name, password, access } = spec;
  return createHash("sha256")
    .update(JSON.stringify([grantsVersion, role_name, database_name, password, access]))
    .digest("hex");
}

/** The TCP ports for instances: `count` ports from `first` on. */
interface PortRange {
  readonly first: number;
  readonly count: number;
}

/** Returns the port of the instance in `dir/id`: its stored one, or a free one, which is stored. `except` turned out to be in use. */
async function choosePort(
  dir: string,
  id: string,
  number: number,
  options: { range: PortRange; except?: number | undefined },
): Promise<number> {
  const known = readPort(dir, id);
  if (known !== undefined && known !== options.except) return known;
  const used = new Set([options.except, ...portsOfOthers(dir, id)]);
  const { first, count } = options.range;
  for (let step = 0; step < count; step += 1) {
    const port = first + ((number + step) % count);
    if (used.has(port) || !(await isFree(port))) continue;
    writeWhole(join(dir, id, "port"), String(port));
    return port;
  }
  throw new Error(`no port between ${first} and ${first + count - 1} is free for a database`);
}

/** Returns a port that no instance has, from the range's end, where those of instances come last. */
async function freePort(dir: string, { first, count }: PortRange): Promise<number> {
  const used = new Set(portsOfOthers(dir, ""));
  for (let port = first + count - 1; port >= first; port -= 1) if (!used.has(port) && (await isFree(port))) return port;
  throw new Error(`no port between ${first} and ${first + count - 1} is free for a copy of a database`);
}

/** Below the range from which Linux picks ports of outgoing connections (32768–60999); one of those may be in use at any time. */
const usualPorts: PortRange = { first: 15_500, count: 15_500 };

/** Returns the instance's stored port; undefined if it has none yet. */
function readPort(dir: string, id: string): number | undefined {
  const file = join(dir, id, "port");
  return existsSync(file) ? Number(readFileSync(file, "utf8")) : undefined;
}

function portsOfOthers(dir: string, id: string): (number | undefined)[] {
  return readdirSync(dir)
    .filter((other) => other !== id)
    .map((other) => readPort(dir, other));
}

function isFree(port: number): Promise<boolean> {
  const probe = createServer();
  return new Promise((resolve) => {
    probe.once("error", () => resolve(false));
    probe.listen({ port, host: "127.0.0.1", exclusive: true }, () => probe.close(() => resolve(true)));
  });
}
