import { createHash, createHmac, randomBytes } from "node:crypto";
import { existsSync, mkdirSync, writeFileSync, chmodSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Client } from "pg";
import { createKeyedMutex } from "../../kit/keyed-mutex.ts";
import { missingDatabase } from "../../kit/part-missing.ts";
import { type ServerAddress, unixSocketOf } from "../../kit/server-address.ts";
import type { DatabaseEndpoint, DatabaseObservation, DatabaseSpec, PostgresHost } from "../../ports/postgres-host.ts";
import type { ClientPrograms } from "../../postgres/client-program.ts";
import { chooseConfinement } from "../../postgres/confinement.ts";
import { withConnection, type ServerConnection } from "../../postgres/connection.ts";
import { measureDatabases } from "../../postgres/grants.ts";
import { applyProject, projectWork, type ProjectServer } from "../../postgres/project-work.ts";
import { isRoleIntact } from "../../postgres/role.ts";
import { scramVerifier } from "../../postgres/scram.ts";
import { readVersion, versionSeenByRole } from "../../postgres/version.ts";
import { failureOfQuery } from "../../postgres/work-failure.ts";
import { closeProject, destroyProject, ensureOwner, isOpen, listOwned, ownerOf } from "./ownership.ts";
import { followPrimary, type Primary, type ServerLogin } from "./primary.ts";
import { createServer } from "node:net";
import { once } from "node:events";
import { runFolder } from "../../kit/run-folder.ts";
import { carryServer, connectServer, type ServerTls } from "../../kit/server-tls.ts";
import { setTimeout as sleep } from "node:timers/promises";
import { readingMemoryBytes } from "../../postgres/reader-role.ts";

export interface ServerPostgresHostOptions {
  readonly server: ServerLogin;
  /** Folder for files that client programs need; created if missing. */
  readonly dir: string;
  readonly bwrap: string | null;
  /** If Berth runs as root, client programs run as uid `uidBase + project_number`. Null: they run as the current, unprivileged user. */
  readonly uidBase: number | null;
  /** pg_dump and pg_restore, at least as new as the server. Null if not installed; dumps then fail with that reason. */
  readonly pgDump: string | null;
  readonly pgRestore: string | null;
  /** Parent of the short folder for the socket; default `/run` for root, `/tmp` otherwise. */
  readonly runBase?: string;
}

export interface ServerPostgresHost extends PostgresHost {
  /** Rejects with a message for the operator if the server is unusable or currently unavailable. */
  check(): Promise<void>;
  /** Databases on the server that every role may connect to, including the projects' roles, as of the last probe. */
  openDatabases(): readonly string[];
}

/**
 * Creates a host for projects' databases on an existing PostgreSQL server. Each project gets its own roles, owner and database, and all
 * state is stored on the server itself. If the server has standbys, the host follows the one that accepts writes.
 */
export function createServerPostgresHost(options: ServerPostgresHostOptions): ServerPostgresHost {
  const primary = followPrimary(options.server);
  const projectServer = createProjectServers(options, primary);
  /** Server and requested settings (hashed) of each database at its last `ensure`. */
  const ensured = new Map<string, { readonly at: ServerAddress; readonly mark: string }>();
  const runExclusive = createKeyedMutex();
  const watch = createSessionWatch(async () => primary.connection(await primary.find()));
  const inServer = async <T>(work: (client: Client) => Promise<T>) =>
    withConnection(primary.connection(await primary.find()), work);
  const takeBack = (id: string, work: (client: Client, id: string) => Promise<void>) =>
    runExclusive(id, async () => {
      ensured.delete(id);
      await inServer((client) => work(client, id));
    });

  async function ensure(spec: DatabaseSpec): Promise<DatabaseEndpoint> {
    const at = await primary.find();
    const superuser = primary.connection(at);
    await withConnection(superuser, async (client) => {
      if (spec.was_ready && (await isOpen(client, spec)) === undefined) throw missingDatabase(spec.id);
      await ensureOwner(client, spec);
      if (ensured.get(spec.id)?.mark === markOf(spec) && (await isIntact(client, spec))) return;
      await applyProject(projectServer(spec), spec, verifierOf(spec));
    });
    const engine_version = await versionSeenByRole(superuser, spec);
    ensured.set(spec.id, { at, mark: markOf(spec) });
    return { ...at, engine_version };
  }

  async function observe(spec: DatabaseSpec): Promise<DatabaseObservation> {
    try {
      const at = await primary.find();
      return await withConnection(primary.connection(at), (client) => observeProject(client, spec, at));
    } catch (error) {
      if (failureOfQuery(error as Error).reason === "away") return { state: "stopped" };
      throw error;
    }
  }

  return {
    ensure: (spec, signal) =>
      runExclusive(spec.id, async () => {
        signal?.throwIfAborted();
        return ensure(spec);
      }),
    observe,
    hasProcess: (id) => {
      const at = primary.lastSeen();
      return at !== undefined && ensured.get(id)?.at === at;
    },
    ...{ tlsOf: () => options.server.tls, history: () => null, isReplaced: async () => false },
    stop: (id) => takeBack(id, closeProject),
    destroy: (id) => takeBack(id, destroyProject),
    list: () => inServer(listOwned),
    ...projectWork(projectServer),
    check: async () => void (await primary.find()),
    openDatabases: primary.openDatabases,
    limitSession: async (spec, processId) => watch.start(spec.role_name, processId),
  };
}

async function observeProject(client: Client, spec: DatabaseSpec, at: ServerAddress): Promise<DatabaseObservation> {
  const open = await isOpen(client, spec);
  if (open === undefined) return { state: "absent" };
  const usage = await measureDatabases(client, { database: spec.database_name, owner: ownerOf(spec.id) });
  if (!open || usage === undefined) return { state: "stopped" };
  const endpoint = { ...at, engine_version: await readVersion(client) };
  return { state: "running", endpoint, ...usage, intact: await isIntact(client, spec) };
}

function createProjectServers(
  options: ServerPostgresHostOptions,
  primary: Primary,
): (spec: DatabaseSpec) => ProjectServer {
  const socketAddress = createServerSocket(options, primary.find);
  // Generated at each start and never leaves this process; passwords derived from it are set again at each use.
  const secret = randomBytes(32);
  return (spec) => ({
    owner: ownerOf(spec.id),
    superuser: async (database) => primary.connection(await primary.find(), database),
    socketAddress,
    programs: () => clientPrograms(options, spec),
    passwordOf: (kind) => createHmac("sha256", secret).update(`${kind} ${spec.id}`).digest("base64url"),
  });
}

async function clientPrograms(
  { dir, bwrap, uidBase, pgDump, pgRestore }: ServerPostgresHostOptions,
  { project_number }: DatabaseSpec,
): Promise<ClientPrograms> {
  const uid = uidBase === null ? null : uidBase + project_number;
  const confinement = await chooseConfinement({ binDir: dirname(pgDump ?? "/"), bwrap, uid });
  return { confinement, configDir: userNames(dir, uid ?? process.getuid?.() ?? 0), pgDump, pgRestore };
}

/** Returns a folder with passwd and group files that name a client program's user and group; creates it if missing. */
function userNames(dir: string, uid: number): string {
  const folder = join(dir, "client-users", `${uid}`);
  if (existsSync(join(folder, "group"))) return folder;
  mkdirSync(folder, { recursive: true, mode: 0o755 });
  writeFileSync(join(folder, "passwd"), `postgres:x:${uid}:${uid}::/berth:/bin/false\n`, { mode: 0o644 });
  writeFileSync(join(folder, "group"), `postgres:x:${uid}:\n`, { mode: 0o644 });
  return folder;
}

const isIntact = (client: Client, spec: DatabaseSpec) => isRoleIntact(client, spec, verifierOf(spec));

/** Deterministic for a password, so that it can be compared with the verifier that the server stores. */
function verifierOf({ password }: DatabaseSpec): string {
  return scramVerifier(password, createHash("sha256").update(`role salt ${password}`).digest().subarray(0, 16));
}

function markOf({ role_name, database_name, password, access }: DatabaseSpec): string {
  return createHash("sha256")
    .update(JSON.stringify([role_name, database_name, password, access]))
    .digest("hex");
}

const port = 5432;

interface SocketPlace {
  /** The folder to which the short folder of the socket belongs, see `runFolder`. */
  readonly dir: string;
  readonly runBase?: string | undefined;
  readonly server: { readonly tls: ServerTls | null };
}

/**
 * Forwards a Unix socket on this machine to the server, for client programs: they read data that projects created and therefore have no
 * network. Each connection goes to the current primary. A server that already listens on a Unix socket is used directly.
 */
function createServerSocket(place: SocketPlace, find: () => Promise<ServerAddress>): () => Promise<ServerAddress> {
  let opening: Promise<ServerAddress> | undefined;
  return async () => {
    const at = await find();
    if (unixSocketOf(at) !== null) return at;
    opening ??= open(place, find).catch((error: unknown) => {
      opening = undefined;
      throw error;
    });
    return opening;
  };
}

async function open(
  { dir, runBase, server: { tls } }: SocketPlace,
  find: () => Promise<ServerAddress>,
): Promise<ServerAddress> {
  const host = join(runFolder(dir, runBase), "server");
  const socket = unixSocketOf({ host, port }) as string;
  mkdirSync(host, { recursive: true, mode: 0o711 });
  // Removes a socket that an earlier process left.
  rmSync(socket, { force: true });
  const server = createServer({ allowHalfOpen: true }, (client) => {
    client.on("error", () => client.destroy());
    find()
      .then((at) => connectServer(at, tls))
      .then((upstream) => carryServer(client, upstream))
      .catch(() => client.destroy());
  });
  server.listen(socket);
  await once(server, "listening");
  // Client programs run as projects' users and authenticate with passwords.
  chmodSync(socket, 0o777);
  server.unref();
  return { host, port };
}

const everyMs = 50;

// Linux's own account of a process: its memory without the buffers that all sessions share. Empty on other systems.
const endGreedy = `
  WITH watched AS MATERIALIZED (
    SELECT a.pid, substring(pg_read_file('/proc/' || a.pid || '/status', 0, 4096, true) FROM 'RssAnon:\\s+(\\d+) kB')::bigint AS kib
    FROM pg_stat_activity a JOIN unnest($1::int[], $2::text[]) AS given (pid, role) ON given.pid = a.pid AND given.role = a.usename)
  SELECT pid, pg_terminate_backend(pid) FROM watched WHERE kib * 1024 > $3`;

/** Watches sessions of a server whose processes belong to another machine or user; it has a connection of its own only while it watches one. */
function createSessionWatch(superuser: () => Promise<ServerConnection>) {
  const watched = new Map<number, { readonly role: string; hasEnded: boolean }>();
  let isRunning = false;
  // A session learns of its end before the statement that ends it answers.
  let looking: Promise<void> = Promise.resolve();

  async function look(client: Client): Promise<void> {
    while (watched.size > 0) {
      const roles = [...watched.values()].map(({ role }) => role);
      const found = client.query<{ pid: number }>(endGreedy, [[...watched.keys()], roles, readingMemoryBytes]);
      looking = found.then(({ rows }) => rows.forEach(({ pid }) => markEnded(pid))).catch(() => {});
      await found;
      await looking;
      await sleep(everyMs);
    }
  }
  function markEnded(pid: number): void {
    const session = watched.get(pid);
    if (session !== undefined) session.hasEnded = true;
  }
  async function run(): Promise<void> {
    while (watched.size > 0) {
      // A lost connection or a switch to the standby: the next one watches on.
      await superuser()
        .then((connection) => withConnection(connection, look))
        .catch(() => sleep(everyMs));
    }
    isRunning = false;
  }
  return {
    /** Ends the session when it takes more memory than a reading statement may. The returned function ends the watch; resolves with whether it did. */
    start(role: string, processId: number) {
      const session = { role, hasEnded: false };
      watched.set(processId, session);
      if (!isRunning) {
        isRunning = true;
        void run();
      }
      return async () => {
        await looking;
        if (watched.get(processId) === session) watched.delete(processId);
        return session.hasEnded;
      };
    },
  };
}
