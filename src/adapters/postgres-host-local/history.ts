import { constants, statSync } from "node:fs";
import { open, type FileHandle } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import pg, { type Client } from "pg";
import { start } from "../../kit/exec.ts";
import {
  HistoryNeedsRestart,
  segmentName,
  type CopyOptions,
  type CopySummary,
  type DatabaseHistory,
  type LogPosition,
  type LogShape,
  DatabaseWorkFailed,
} from "../../ports/postgres-host.ts";
import { checkedContent, endOf, halt } from "../../postgres/client-program.ts";
import {
  chooseConfinement,
  programEnvironment,
  readOnly,
  sandboxOf,
  usersIn,
  type Confinement,
} from "../../postgres/confinement.ts";
import { withConnection } from "../../postgres/connection.ts";
import { compressArchive } from "../../postgres/dump.ts";
import { lightCommand } from "../../sandbox/light-sandbox.ts";
import { instanceFiles } from "./instance-files.ts";
import { makeBranch } from "./branch.ts";
import { cloneInstance, cloneName, type Source } from "./clone.ts";
import { discardCopy, recover, recoveredName } from "./recover.ts";
import type { HistoryPlace, Instance } from "./server.ts";
import { keptLog } from "./settings.ts";
import { emptiedFolders, runningFiles } from "./left-out.ts";

/** The replication slot that keeps the log. Only a superuser can drop it. */
const slot = "berth_history";

/** Keeps the history of local instances. The control plane reads the log where the server writes it, so a server needs no archiver. */
export function createLocalHistory(place: HistoryPlace): DatabaseHistory {
  const seen = new Map<string, Seen>();
  const running = (id: string) => {
    const instance = place.find(id);
    if (instance === undefined) throw new Error(`there is no database ${id} on this machine`);
    return instance;
  };
  const discard = (name: string) => async (id: string) => {
    const instance = place.find(id);
    if (instance !== undefined) await discardCopy(place, instance, name);
  };
  return {
    async position({ id }) {
      const at = new Date();
      const known = seen.get(id);
      if (known !== undefined && newestStamps(known.dir, known.position) === known.stamps)
        return { ...known.position, at };
      seen.delete(id);
      const { position, isSettled, ...rest } = await ask(running(id));
      if (isSettled) seen.set(id, { position, ...rest });
      return position;
    },
    readSegment({ id }, log, end) {
      return readSegment(running(id), log, end).catch((error: unknown) => {
        // The server may have dropped it after it was asked where the kept log begins.
        seen.delete(id);
        throw error;
      });
    },
    async commit({ id }) {
      const statement = "SELECT pg_logical_emit_message(true, 'berth', '')";
      await asSuperuser(running(id), (client) => client.query(statement));
    },
    async release({ id }, before) {
      const statement = "SELECT pg_replication_slot_advance($1, ('0/0'::pg_lsn + $2::numeric))";
      seen.delete(id);
      await asSuperuser(running(id), (client) => client.query(statement, [slot, before]));
    },
    async end({ id }) {
      const instance = place.find(id);
      seen.delete(id);
      if (instance !== undefined && (await instance.server.observe()) === "running")
        await asSuperuser(instance, (client) => client.query(dropSlot, [slot]));
    },
    copy: ({ id }, options) => copy(place, running(id), options),
    recover: (spec, from) => recover(place, { instance: running(spec.id), spec, from }),
    discardRecovered: discard(recoveredName),
    clone: (spec, options) => cloneInstance(place, { spec, options, ...sourceOf(running(spec.id), options.signal) }),
    discardClone: discard(cloneName),
    branch: (spec, target, options) =>
      makeBranch(place, { source: sourceOf(running(spec.id), options.signal), target, options }),
  };
}

function sourceOf(instance: Instance, signal: AbortSignal): Source {
  return {
    instance,
    whileCopied: (work) => whileCopied(instance, signal, work),
    readSegment: (log, end) => readSegment(instance, log, end),
  };
}

/** What was last asked of a server, and the time stamps of its newest log files just before. */
interface Seen {
  readonly dir: string;
  readonly position: LogPosition;
  readonly stamps: string;
}

// The kernel's clock for time stamps ticks every 1 to 10 ms: a later write within the same tick leaves the same stamp.
const settledMs = 100;

/** Asks the server how far its log is. `isSettled`: nothing was written while the stamps were read. */
async function ask(instance: Instance): Promise<Seen & { readonly isSettled: boolean }> {
  const { dir } = instance;
  return asSuperuser(instance, async (client) => {
    const found = await askPosition(client);
    const stamps = newestStamps(dir, found);
    const position = await askPosition(client);
    return { dir, stamps, position, isSettled: position.end === found.end && Date.now() - lastOf(stamps) > settledMs };
  });
}

/** Returns the modification times of the segment being written and the next one, in ns: all that an idle database costs. */
function newestStamps(dir: string, log: LogPosition): string {
  const stamps = [log.end - 1, log.end - 1 + log.segment_bytes].map((at) => {
    const file = join(instanceFiles(dir).data, "pg_wal", segmentName(log, at));
    return statSync(file, { bigint: true, throwIfNoEntry: false })?.mtimeNs ?? 0n;
  });
  return stamps.join(" ");
}

const lastOf = (stamps: string) => Math.max(...stamps.split(" ").map((stamp) => Number(BigInt(stamp) / 1_000_000n)));

const number = (lsn: string) => `(${lsn} - '0/0'::pg_lsn)::text`;
const shape = `(SELECT system_identifier::text FROM pg_control_system()) AS system, timeline_id AS timeline,
  (SELECT setting::int FROM pg_settings WHERE name = 'wal_segment_size') AS segment_bytes`;
// The transaction's start lies before the reading of the position.
const positionQuery = `SELECT now() AS at, ${number("pg_current_wal_flush_lsn()")} AS end, ${shape},
    ${number("s.restart_lsn")} AS kept_from
  FROM pg_control_checkpoint() LEFT JOIN pg_replication_slots s ON s.slot_name = '${slot}' AND s.wal_status <> 'lost'`;

const dropSlot = "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = $1";

type Asked = Omit<LogPosition, "end" | "kept_from"> & { end: string; kept_from: string | null };

async function askPosition(client: Client): Promise<LogPosition> {
  const { rows } = await client.query<Asked>(positionQuery);
  const row = rows[0] as (typeof rows)[number];
  if (row.kept_from !== null) return { ...row, end: Number(row.end), kept_from: Number(row.kept_from) };
  await client.query(dropSlot, [slot]);
  // In the data folder, too: a server with a slot does not start without room for it, whoever wrote its configuration.
  for (const [name, value] of Object.entries(keptLog)) await client.query(`ALTER SYSTEM SET ${name} = '${value}'`);
  // 55000: the server was started without room for a slot.
  await client.query("SELECT pg_create_physical_replication_slot($1, true)", [slot]).catch((error: unknown) => {
    throw (error as { code?: string }).code === "55000" ? new HistoryNeedsRestart() : error;
  });
  return askPosition(client);
}

function asSuperuser<T>({ server }: Instance, work: (client: Client) => Promise<T>): Promise<T> {
  // Not the project's own database, which its owner may drop.
  return withConnection(server.superuserConnection("template1"), work);
}

async function readSegment({ dir }: Instance, log: LogShape, end: number): Promise<Buffer> {
  const name = segmentName(log, end - 1);
  const length = end - Math.floor((end - 1) / log.segment_bytes) * log.segment_bytes;
  const path = join(instanceFiles(dir).data, "pg_wal", name);
  let file: FileHandle | undefined;
  try {
    file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW);
    const { buffer, bytesRead } = await file.read({ buffer: Buffer.alloc(length), position: 0 });
    if (bytesRead !== length) throw new Error(`the log segment ${name} is shorter than it must be`);
    return buffer;
  } finally {
    await file?.close();
  }
}

const leftOut = [
  ...emptiedFolders.map((folder) => `./${folder}/*`),
  ...runningFiles.map((file) => `./${file}`),
  ...["*/pgsql_tmp*", "*/pg_internal.init*"],
];

async function copy(place: HistoryPlace, instance: Instance, options: CopyOptions): Promise<CopySummary> {
  const confinement = await chooseConfinement({ binDir: place.binDir, bwrap: place.bwrap, uid: instance.uid });
  return whileCopied(instance, options.signal, () => streamFolder(confinement, instance, options));
}

/** Lets `work` copy the running instance's folder. The copy needs the log between the returned positions. */
async function whileCopied(instance: Instance, signal: AbortSignal, work: () => Promise<void>): Promise<CopySummary> {
  // The session that begins a backup must end it. Its queries wait for checkpoints, so they have no time limit.
  const client = new pg.Client({
    ...instance.server.superuserConnection("template1"),
    connectionTimeoutMillis: 30_000,
  });
  client.on("error", () => {});
  await client.connect();
  try {
    const begun = await client.query<{ start: string } & LogShape>(
      `SELECT ${number("pg_backup_start('berth', fast => true)")} AS start, ${shape} FROM pg_control_checkpoint()`,
    );
    await work();
    const ended = await client.query<{ stop: string; backup_label: string; at: Date }>(
      `SELECT ${number("lsn")} AS stop, labelfile AS backup_label, clock_timestamp() AS at FROM pg_backup_stop(wait_for_archive => false)`,
    );
    const { start: from, ...log } = begun.rows[0] as { start: string } & LogShape;
    const { stop, backup_label, at } = ended.rows[0] as (typeof ended.rows)[number];
    return { ...log, start: Number(from), stop: Number(stop), backup_label, at };
  } catch (error) {
    signal.throwIfAborted();
    throw error;
  } finally {
    await client.end().catch(() => {});
  }
}

/** Streams the folder as the server's own user, which can read nothing else. */
async function streamFolder(confinement: Confinement, { dir }: Instance, options: CopyOptions): Promise<void> {
  const { data, config } = instanceFiles(dir);
  const folder = confinement.bwrap === null ? data : "/berth/data";
  const excluded = leftOut.map((pattern) => `--exclude=${pattern}`);
  const tar = {
    file: "/bin/tar",
    args: ["--create", "--file=-", `--directory=${folder}`, "--anchored", ...excluded, "."],
  };
  const binds = [...usersIn(config), readOnly(data, folder)];
  const command = confinement.bwrap === null ? tar : lightCommand({ ...sandboxOf(confinement), binds }, tar);
  const child = start(command, { env: programEnvironment, ownGroup: true });
  child.stdin.end();
  const ended = endOf(child, options.signal);
  const check = async () => {
    const { exitCode, stderr } = await ended;
    options.signal.throwIfAborted();
    // 1: a file changed, or was removed, while tar read it. The log repairs that.
    if (exitCode !== 0 && exitCode !== 1) throw new DatabaseWorkFailed("away", `tar failed: ${stderr.slice(0, 500)}`);
  };
  try {
    await options.consume(Readable.from(compressArchive(checkedContent(child.stdout, check)), { objectMode: false }));
  } catch (error) {
    halt(child);
    throw error;
  } finally {
    await ended;
  }
}
