import { join } from "node:path";
import pg, { escapeIdentifier, type Client } from "pg";
import { runFolder } from "../../kit/run-folder.ts";
import { syncFileSystem } from "../../kit/sync-disk.ts";
import { until } from "../../kit/until.ts";
import { DatabaseWorkFailed, MaskFailed, type BranchOptions, type DatabaseSpec } from "../../ports/postgres-host.ts";
import { chooseConfinement, type Confinement } from "../../postgres/confinement.ts";
import { withConnection, type ServerConnection } from "../../postgres/connection.ts";
import { scramVerifier } from "../../postgres/scram.ts";
import { fillFolder, type Source } from "./clone.ts";
import { configure } from "./initialise.ts";
import { ensureFolder, ensureSecret, instanceFiles } from "./instance-files.ts";
import { fillFrom, startCopy } from "./recover.ts";
import type { HistoryPlace } from "./server.ts";
import { startAtFreePort } from "./start-server.ts";

interface Branching {
  readonly source: Source;
  readonly target: DatabaseSpec;
  readonly options: BranchOptions;
}

/**
 * Makes an instance from another one, and leaves its server running. While it recovers, and while roles and data are changed, only the
 * platform reaches it: over its socket, whose folder is closed. What a killed attempt leaves goes with the instance: its port is in the
 * folder before it has a server.
 */
export async function makeBranch(place: HistoryPlace, { source, target, options }: Branching): Promise<void> {
  const { signal } = options;
  const { uid } = source.instance;
  await place.destroy(target.id);
  const dir = join(place.dir, target.id);
  ensureFolder(dir, 0o700);
  const confinement = await chooseConfinement({ binDir: place.binDir, bwrap: place.bwrap, uid });
  const socketDir = join(runFolder(place.dir, place.runBase), target.id);
  const settings = { socketDir, socketMode: "shared" as const, overrides: {} };
  configure(confinement, dir, { ...settings, port: null, isRecovered: true });
  await fillFolderOf(confinement, source, dir, options);
  // Called in the background, it leaves little for the second call to wait for.
  const synced = syncFileSystem(dir, signal);
  synced.catch(() => {});
  const group = place.groups && { group: place.groups.of(target.id) };
  const { binDir, bwrap } = place;
  const server = { ...{ binDir, bwrap, dir, uid, isRecovered: true }, ...settings, ...group };
  const nextPort = (taken?: number) => place.assignPort(target, taken);
  const { port, copy } = await startAtFreePort(nextPort, async (at) => {
    const copied = await startCopy({ ...server, port: at }, { until: options.from?.until ?? null, signal });
    return { port: at, copy: copied };
  });
  try {
    const secret = ensureSecret(instanceFiles(dir).secret);
    const connection = copy.superuserConnection("template1");
    await withConnection(connection, async (client) => {
      await closeRoles(client, target, secret);
      // Without fsync, which makes each of its statements wait for the disk.
      await place.apply({ server: copy, dir, uid, port, socketDir }, target);
      if (options.mask !== null) {
        const { role_name: user, password, database_name: database } = target;
        await runMask({ ...connection, user, password, database }, options.mask, signal);
      }
      configure(confinement, dir, { ...settings, port, isRecovered: false });
      await applySettings(client, signal);
    });
    await synced;
    await syncFileSystem(dir, signal);
    ensureFolder(socketDir, 0o711, uid);
  } catch (error) {
    await copy.stop();
    throw error;
  }
}

/** Lets a server take the settings that have been written for it, all of which count from then on but those of a recovery. */
async function applySettings(client: Client, signal: AbortSignal): Promise<void> {
  await client.query("SELECT pg_reload_conf()");
  const isSynced = async () => {
    const { rows } = await client.query<{ fsync: string }>("SHOW fsync");
    return rows[0]?.fsync === "on" || undefined;
  };
  const isDone = await until(isSynced, { timeoutMs: 60_000, firstMs: 2, signal });
  signal.throwIfAborted();
  if (isDone === undefined) throw new Error("the branch's server did not take its settings");
  // Where this session knows it, so does the process that writes.
  await client.query("CHECKPOINT");
}

async function fillFolderOf(
  confinement: Confinement,
  source: Source,
  dir: string,
  { from, announce, signal }: BranchOptions,
): Promise<void> {
  if (from === null)
    return void (await fillFolder(confinement, { ...source, options: { mayCopy: true, announce, signal } }, dir));
  await announce("copy");
  await fillFrom(confinement, dir, from);
}

/** Gives the copy's superuser a password of its own, and lets no other role of the original log in. */
async function closeRoles(client: Client, target: DatabaseSpec, secret: string): Promise<void> {
  const { database_name } = target;
  const { rows } = await client.query<{ rolname: string; own: boolean }>(
    "SELECT rolname, rolname = current_user AS own FROM pg_roles WHERE rolcanlogin",
  );
  for (const { rolname, own } of rows)
    await client.query(
      `ALTER ROLE ${escapeIdentifier(rolname)} ${own ? `PASSWORD ${client.escapeLiteral(scramVerifier(secret))}` : "NOLOGIN"}`,
    );
  const found = await client.query("SELECT FROM pg_database WHERE datname = $1", [database_name]);
  if (found.rowCount === 0)
    throw new DatabaseWorkFailed("refused", `The database ${database_name} did not exist at that moment.`);
}

const mostReturnedBytes = 16 * 1024 ** 2;

/** Runs the script in one implicit transaction. What it returns is discarded, up to a limit. */
async function runMask(
  login: ServerConnection,
  { sql, timeoutMs }: NonNullable<BranchOptions["mask"]>,
  signal: AbortSignal,
): Promise<void> {
  const client = new pg.Client({ ...login, connectionTimeoutMillis: 30_000, options: "-c statement_timeout=0" });
  client.on("error", () => {});
  const time = AbortSignal.timeout(timeoutMs);
  const stop = new AbortController();
  const any = AbortSignal.any([signal, time, stop.signal]);
  try {
    await client.connect();
    const { stream } = (client as unknown as { connection: { stream: NodeJS.EventEmitter & { destroy(): void } } })
      .connection;
    let bytes = 0;
    stream.on("data", (chunk: Buffer) => (bytes += chunk.length) > mostReturnedBytes && stop.abort());
    any.addEventListener("abort", () => stream.destroy(), { once: true });
    any.throwIfAborted();
    await new Promise<void>((resolve, reject) => {
      const query = new pg.Query(sql);
      // A listener for rows keeps the client from collecting them.
      query.on("row", () => {});
      query.once("end", () => resolve()).once("error", reject);
      client.once("end", () => reject(new Error("The connection ended.")));
      client.query(query);
    });
  } catch (error) {
    signal.throwIfAborted();
    if (time.aborted) throw new MaskFailed(`The mask took longer than ${timeoutMs / 1000} s.`);
    if (stop.signal.aborted) throw new MaskFailed("The mask's statements return more than 16 MiB.");
    throw new MaskFailed(`The mask failed: ${textOf(error as pg.DatabaseError, sql)}`);
  } finally {
    await client.end().catch(() => {});
  }
}

/** PostgreSQL's message, with the line of the script where it says one. */
function textOf({ message, position, where }: pg.DatabaseError, sql: string): string {
  const line = position === undefined ? "" : ` (line ${sql.slice(0, Number(position)).split("\n").length})`;
  const context = where === undefined ? "" : ` ${where.split("\n")[0]}`;
  return `${message}${line}${context}`.slice(0, 500);
}
