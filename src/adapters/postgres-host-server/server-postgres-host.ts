import { createHash, createHmac, randomBytes } from "node:crypto";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Client } from "pg";
import { createKeyedMutex } from "../../kit/keyed-mutex.ts";
import type { ServerAddress } from "../../kit/server-address.ts";
import type { DatabaseEndpoint, DatabaseObservation, DatabaseSpec, PostgresHost } from "../../ports/postgres-host.ts";
import type { ClientPrograms } from "../../postgres/client-program.ts";
import { chooseConfinement } from "../../postgres/confinement.ts";
import { withConnection } from "../../postgres/connection.ts";
import { measureDatabases } from "../../postgres/grants.ts";
import { applyProject, projectWork, type ProjectServer } from "../../postgres/project-work.ts";
import { isRoleIntact } from "../../postgres/role.ts";
import { scramVerifier } from "../../postgres/scram.ts";
import { readVersion, versionSeenByRole } from "../../postgres/version.ts";
import { failureOfQuery } from "../../postgres/work-failure.ts";
import { closeProject, destroyProject, ensureOwner, isOpen, listOwned, ownerOf } from "./ownership.ts";
import { followPrimary, type Primary, type ServerLogin } from "./primary.ts";
import { createServerSocket } from "./server-socket.ts";

export interface ServerPostgresHostOptions {
  readonly server: ServerLogin;
  /** What client programs need to see; made when it is missing. */
  readonly dir: string;
  readonly bwrap: string | null;
  /** As root: client programs run as user `uidBase + project_number`. Null: as the current, ordinary user. */
  readonly uidBase: number | null;
  /** The client programs, as new as the server or newer. Null: there are none, and dumps say so. */
  readonly pgDump: string | null;
  readonly pgRestore: string | null;
  /** Where the short folder for a socket is made; default `/run` for root and `/tmp` for others. */
  readonly runBase?: string;
}

export interface ServerPostgresHost extends PostgresHost {
  /** Rejects with a sentence for the operator when the server cannot be used, or not now. */
  check(): Promise<void>;
  /** Databases of others on the server that let every role in, and so the projects' roles, as seen last. */
  openDatabases(): readonly string[];
}

/**
 * Projects' databases on an existing PostgreSQL server, beside each other: each has roles, an owner and a database of its own. What it needs to
 * know stands on the server. Where the server has standbys, the one that accepts writes is followed.
 */
export function createServerPostgresHost(options: ServerPostgresHostOptions): ServerPostgresHost {
  const primary = followPrimary(options.server);
  const projectServer = createProjectServers(options, primary);
  /** Where each database was at its last `ensure`, and what was asked for then. */
  const ensured = new Map<string, { readonly at: ServerAddress; readonly mark: string }>();
  const runExclusive = createKeyedMutex();
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
    tlsOf: () => options.server.tls,
    stop: (id) => takeBack(id, closeProject),
    destroy: (id) => takeBack(id, destroyProject),
    list: () => inServer(listOwned),
    ...projectWork(projectServer),
    check: async () => void (await primary.find()),
    openDatabases: primary.openDatabases,
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
  // Made anew at each start: it is set again at each use, and never leaves this process.
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

/** The folder with the names that a client program's user and group have. */
function userNames(dir: string, uid: number): string {
  const folder = join(dir, "client-users", `${uid}`);
  if (existsSync(join(folder, "group"))) return folder;
  mkdirSync(folder, { recursive: true, mode: 0o755 });
  writeFileSync(join(folder, "passwd"), `postgres:x:${uid}:${uid}::/berth:/bin/false\n`, { mode: 0o644 });
  writeFileSync(join(folder, "group"), `postgres:x:${uid}:\n`, { mode: 0o644 });
  return folder;
}

const isIntact = (client: Client, spec: DatabaseSpec) => isRoleIntact(client, spec, verifierOf(spec));

/** The same for the same password, so that what the server keeps can be compared with it. */
function verifierOf({ password }: DatabaseSpec): string {
  return scramVerifier(password, createHash("sha256").update(`role salt ${password}`).digest().subarray(0, 16));
}

function markOf({ role_name, database_name, password, access }: DatabaseSpec): string {
  return createHash("sha256")
    .update(JSON.stringify([role_name, database_name, password, access]))
    .digest("hex");
}
