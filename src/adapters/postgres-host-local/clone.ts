import { constants, copyFileSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { escapeIdentifier } from "pg";
import { run } from "../../kit/exec.ts";
import {
  CopyIsFull,
  DatabaseWorkFailed,
  segmentName,
  type ClonedInstance,
  type CloneOptions,
  type CopyMethod,
  type CopySummary,
  type DatabaseSpec,
  type LogShape,
  type TableState,
} from "../../ports/postgres-host.ts";
import {
  chooseConfinement,
  programEnvironment,
  readOnly,
  sandboxOf,
  usersIn,
  writable,
  type Confinement,
} from "../../postgres/confinement.ts";
import { withConnection, type ServerConnection } from "../../postgres/connection.ts";
import { projectWork } from "../../postgres/project-work.ts";
import { scramVerifier } from "../../postgres/scram.ts";
import { lightCommand } from "../../sandbox/light-sandbox.ts";
import { emptiedFolders, runningFiles } from "./left-out.ts";
import { configure } from "./initialise.ts";
import { ensureFolder, instanceFiles } from "./instance-files.ts";
import { copyBeside, discardCopy, giveLog, placeSegments, settingsOf, writeLabels } from "./recover.ts";
import { createLocalServer, type HistoryPlace, type Instance, type LocalServer } from "./server.ts";
import { startAtFreePort } from "./start-server.ts";
import { watchLocks } from "./watch-locks.ts";

export interface Source {
  readonly instance: Instance;
  readonly whileCopied: (work: () => Promise<void>) => Promise<CopySummary>;
  readonly readSegment: (log: LogShape, end: number) => Promise<Buffer>;
}

interface Copying extends Source {
  readonly options: Pick<CloneOptions, "mayCopy" | "signal"> & {
    /** Called before anything is copied. */
    readonly announce?: (method: CopyMethod) => Promise<void>;
  };
}

interface Cloning extends Source {
  readonly spec: DatabaseSpec;
  readonly options: CloneOptions;
}

export const cloneName = "clone";

/** Only one instance of the machine is copied at a time where the file system cannot share blocks. */
let lastCopy: Promise<unknown> = Promise.resolve();

export async function cloneInstance(place: HistoryPlace, cloning: Cloning): Promise<ClonedInstance> {
  const { instance, spec, options } = cloning;
  await discardCopy(place, instance, cloneName);
  const confinement = await chooseConfinement({ binDir: place.binDir, bwrap: place.bwrap, uid: instance.uid });
  const beside = copyBeside(place, instance, cloneName);
  const folder = beside.dir;
  ensureFolder(folder, 0o700);
  // The copy has the instance's superuser.
  copyFileSync(instanceFiles(instance.dir).secret, instanceFiles(folder).secret);
  const placeAt = (port: number) => {
    const copy = { ...beside, port, socketMode: "shared" as const };
    const { socketDir, socketMode } = copy;
    configure(confinement, folder, { port, socketDir, socketMode, overrides: {}, isRecovered: false });
    return { copy, server: createLocalServer({ ...copy, settings: settingsOf(null) }) };
  };
  placeAt(await place.freePort());
  const method = await fillFolder(confinement, cloning, folder);
  const { copy, server } = await startCopy(place, placeAt, options.signal);
  await withConnection(server.superuserConnection("template1"), (client) =>
    client.query(
      `ALTER ROLE ${escapeIdentifier(spec.role_name)} PASSWORD ${client.escapeLiteral(scramVerifier(options.password))}`,
    ),
  );
  return { method, ...lookInto(place, { ...instance, ...copy, server }, spec) };
}

/** Starts the copy at a port that nobody has taken since it was found free, such as another copy. */
async function startCopy<Placed extends { readonly server: LocalServer }>(
  place: HistoryPlace,
  placeAt: (port: number) => Placed,
  signal: AbortSignal,
): Promise<Placed> {
  try {
    return await startAtFreePort(
      () => place.freePort(),
      async (port) => {
        const placed = placeAt(port);
        await placed.server.ensure(signal);
        return placed;
      },
    );
  } catch (error) {
    signal.throwIfAborted();
    throw new DatabaseWorkFailed("refused", `The copy does not start: ${(error as Error).message}`, error);
  }
}

function lookInto(place: HistoryPlace, copy: Instance, spec: DatabaseSpec): Omit<ClonedInstance, "method"> {
  const work = projectWork(() => place.projectServer(copy));
  return {
    server: { host: copy.socketDir, port: copy.port },
    async tables(database, signal) {
      await awaitSessions(copy.server.superuserConnection(database), signal);
      const counts = await work.countRows({ ...spec, database_name: database }, database, { signal });
      const rows = new Map(counts.map((each) => [each.table, each.rows]));
      return withConnection(copy.server.superuserConnection(database), async (client) => {
        const { rows: found } = await client.query<Omit<TableState, "rows">>(tablesQuery);
        return found.flatMap((table) => {
          const counted = rows.get(table.table);
          return counted === undefined ? [] : [{ ...table, rows: counted }];
        });
      });
    },
    watch: (database) => watchLocks(copy.server.superuserConnection(database)),
  };
}

const endingMs = 2000;

/** A session adds to the counters when it ends, which may be just after its program has. */
function awaitSessions(connection: ServerConnection, signal: AbortSignal): Promise<void> {
  const query =
    "SELECT FROM pg_stat_activity WHERE datname = current_database() AND backend_type = 'client backend' AND usename <> current_user";
  return withConnection(connection, async (client) => {
    for (const began = Date.now(); Date.now() - began < endingMs; await sleep(20, undefined, { signal }))
      if ((await client.query(query)).rowCount === 0) return;
  });
}

const numbered = (value: string) =>
  `coalesce((SELECT json_object_agg(attnum, ${value}) FROM pg_attribute WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped), '{}')`;

const tablesQuery = `SELECT format('%I.%I', n.nspname, c.relname) AS table, c.oid::int8::float8 AS oid, c.relfilenode::int8::float8 AS file,
    coalesce(pg_stat_get_tuples_inserted(c.oid), 0)::float8 AS inserted,
    coalesce(pg_stat_get_tuples_updated(c.oid), 0)::float8 AS updated,
    coalesce(pg_stat_get_tuples_deleted(c.oid), 0)::float8 AS deleted,
    ${numbered("attname")} AS columns,
    ${numbered("format_type(atttypid, atttypmod) || CASE WHEN attnotnull THEN ' not null' ELSE '' END")} AS types,
    coalesce((SELECT json_object_agg(part, state) FROM (
      SELECT 'index ' || i.relname AS part, CASE WHEN indisvalid THEN 'valid' ELSE 'not valid' END AS state
        FROM pg_index JOIN pg_class i ON i.oid = indexrelid
        WHERE indrelid = c.oid AND NOT EXISTS (SELECT FROM pg_constraint WHERE conindid = indexrelid AND contype IN ('u', 'x'))
      UNION ALL SELECT 'constraint ' || conname, CASE WHEN convalidated THEN 'valid' ELSE 'not valid' END
        FROM pg_constraint WHERE conrelid = c.oid AND contype IN ('c', 'f', 'u', 'x')
      UNION ALL SELECT 'trigger ' || tgname, CASE tgenabled WHEN 'D' THEN 'disabled' ELSE 'enabled' END
        FROM pg_trigger WHERE tgrelid = c.oid AND NOT tgisinternal) parts), '{}') AS parts
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind = 'r'`;

/** Fills a configured folder with the running instance's data and the log that makes it whole. */
export async function fillFolder(confinement: Confinement, copying: Copying, dir: string): Promise<CopyMethod> {
  const { mayCopy, announce, signal } = copying.options;
  const { data } = instanceFiles(dir);
  for (const folder of ["", ...emptiedFolders, "pg_wal/archive_status"])
    ensureFolder(join(data, folder), 0o700, confinement.uid);
  const method = canShare(copying.instance, dir) ? "clone" : "copy";
  if (method === "copy" && !mayCopy) throw new CopyIsFull();
  await announce?.(method);
  const summary = await (method === "clone"
    ? fill(confinement, copying, dir)
    : inTurn(() => fill(confinement, copying, dir)));
  writeLabels(confinement, data, summary.backup_label);
  await placeSegments(confinement, dir, { ...summary, segments: segmentsOf(summary, copying), signal });
  giveLog(dir);
  return method;
}

/** Returns whether the file system shares blocks between both folders. Tries it with a file that is not the tenant's. */
function canShare({ dir: from }: Instance, to: string): boolean {
  const shared = join(to, "shared");
  try {
    copyFileSync(join(instanceFiles(from).config, "postgresql.conf"), shared, constants.COPYFILE_FICLONE_FORCE);
    return true;
  } catch {
    return false;
  } finally {
    rmSync(shared, { force: true });
  }
}

async function fill(confinement: Confinement, { instance, options, whileCopied }: Copying, dir: string) {
  const { data } = instanceFiles(instance.dir);
  return whileCopied(async () => {
    options.signal.throwIfAborted();
    const skipped = new Set([...emptiedFolders, ...runningFiles, "recovery.signal"]);
    const names = readdirSync(data).filter((name) => !skipped.has(name));
    await copyFiles(confinement, { instance, dir, names, signal: options.signal });
  });
}

interface Files {
  readonly instance: Instance;
  /** Of the copy. */
  readonly dir: string;
  readonly names: readonly string[];
  readonly signal: AbortSignal;
}

/** Copies as the server's own user, which can read nothing else. */
async function copyFiles(confinement: Confinement, { instance, dir, names, signal }: Files): Promise<void> {
  const source = instanceFiles(instance.dir);
  const { data } = instanceFiles(dir);
  const isBare = confinement.bwrap === null;
  const [from, to] = isBare ? [source.data, data] : ["/berth/data", "/berth/copy"];
  const options = ["--archive", "--reflink=auto", `--target-directory=${to}`, "--"];
  const program = { file: "/bin/cp", args: [...options, ...names.map((name) => `${from}/${name}`)] };
  const binds = [...usersIn(source.config), readOnly(source.data, from), writable(data, to)];
  const command = isBare ? program : lightCommand({ ...sandboxOf(confinement), binds }, program);
  const { exitCode, stderr } = await run(command, { env: programEnvironment, signal });
  signal.throwIfAborted();
  // A file that was removed meanwhile is no error: the log says so, too.
  const lines = stderr.split("\n").filter((line) => line !== "" && !line.endsWith(": No such file or directory"));
  if (exitCode === 0 || (exitCode === 1 && lines.length === 0)) return;
  const reason = stderr.includes("No space left on device") ? "full" : "away";
  throw new DatabaseWorkFailed(reason, `The database could not be copied: ${lines[0] ?? "cp ended"}`.slice(0, 500));
}

function inTurn<T>(work: () => Promise<T>): Promise<T> {
  const turn = lastCopy.then(work);
  lastCopy = turn.catch(() => {});
  return turn;
}

async function* segmentsOf(log: CopySummary, { readSegment }: Source) {
  const { start, stop, segment_bytes: size } = log;
  for (let at = Math.floor(start / size) * size; at < stop; at += size)
    yield { name: segmentName(log, at), content: await readSegment(log, Math.min(at + size, stop)) };
}
