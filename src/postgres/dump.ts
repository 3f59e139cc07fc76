import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { constants, createZstdCompress } from "node:zlib";
import pg, { type Client } from "pg";
import { start, type Command } from "../kit/exec.ts";
import type { CountOptions, DumpOptions, DumpSummary, TableCount } from "../ports/postgres-host.ts";
import {
  checkedContent,
  clientCommand,
  compressorCommand,
  endOf,
  halt,
  type ClientPrograms,
  type Login,
} from "./client-program.ts";
import { programEnvironment } from "./confinement.ts";
import { failureOfProgram, failureOfQuery } from "./work-failure.ts";

/** Dumps and counts in one snapshot. The login must be the backup role's. */
export async function dumpDatabase(programs: ClientPrograms, login: Login, options: DumpOptions): Promise<DumpSummary> {
  return inSnapshot(login, options, async (client, { snapshot, version }, signal) => {
    const [counts] = await together(
      (failed) => countRows(client, { ...options, signal: failed }).catch(rethrow),
      (failed) => streamDump(programs, login, { ...options, snapshot, signal: failed }),
      signal,
    );
    return { counts, engine_version: version };
  });
}

/** Counts rows in a snapshot of its own. */
export async function countDatabase(login: Login, options: CountOptions): Promise<readonly TableCount[]> {
  return inSnapshot(login, options, (client, _, signal) => countRows(client, { ...options, signal }).catch(rethrow));
}

type InSnapshot<T> = (
  client: pg.Client,
  exported: { snapshot: string; version: string },
  signal: AbortSignal,
) => Promise<T>;

/** Runs `work` in a transaction that shows one snapshot of the database. */
async function inSnapshot<T>(login: Login, { signal }: CountOptions, work: InSnapshot<T>): Promise<T> {
  const client = new pg.Client({ ...login, options: "-c search_path=pg_catalog", connectionTimeoutMillis: 30_000 });
  client.on("error", () => {});
  // Destroying the socket also cancels the running statement: counting a large table takes minutes.
  const stop = () =>
    void (client as unknown as { connection: { stream: { destroy(): void } } }).connection.stream.destroy();
  try {
    await client.connect().catch(rethrow);
    signal.addEventListener("abort", stop, { once: true });
    await client.query("BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY");
    const exported = await client.query<{ snapshot: string; version: string }>(
      "SELECT pg_export_snapshot() AS snapshot, split_part(current_setting('server_version'), ' ', 1) AS version",
    );
    return await work(client, exported.rows[0] as { snapshot: string; version: string }, signal);
  } catch (error) {
    signal.throwIfAborted();
    throw error;
  } finally {
    signal.removeEventListener("abort", stop);
    await client.end().catch(() => {});
  }
}

/** Runs both at once; when one fails, stops the other and throws the first failure. */
async function together<A, B>(
  one: (signal: AbortSignal) => Promise<A>,
  other: (signal: AbortSignal) => Promise<B>,
  signal: AbortSignal,
): Promise<[A, B]> {
  const failed = new AbortController();
  const either = AbortSignal.any([signal, failed.signal]);
  let first: unknown;
  const watched = async <T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> => {
    try {
      return await work(either);
    } catch (error) {
      first ??= error;
      failed.abort(error);
      throw error;
    }
  };
  const [a, b] = await Promise.allSettled([watched(one), watched(other)]);
  if (a.status === "fulfilled" && b.status === "fulfilled") return [a.value, b.value];
  throw first;
}

interface Streaming extends Pick<DumpOptions, "signal" | "consume" | "isCompressed"> {
  readonly snapshot: string;
}

async function streamDump(
  programs: ClientPrograms,
  login: Login,
  { snapshot, signal, consume, isCompressed }: Streaming,
): Promise<void> {
  const args = [
    "--format=custom",
    "--compress=0",
    `--snapshot=${snapshot}`,
    "--lock-wait-timeout=60s",
    "--no-publications",
    "--no-subscriptions",
    "--no-security-labels",
    "--no-tablespaces",
    "--no-password",
  ];
  const { command, env } = clientCommand(programs, { program: "pg_dump", args, login });
  const compressor = isCompressed ? compressorCommand(programs) : null;
  const dumping = startBoth({ command, env, compressor }, signal);
  const archive = checkedContent(dumping.content, dumping.check);
  const readable =
    isCompressed && compressor === null ? compressArchive(archive) : Readable.from(archive, { objectMode: false });
  try {
    await consume(readable);
  } catch (error) {
    dumping.halt();
    throw error;
  } finally {
    await dumping.ended;
  }
}

/** Starts pg_dump and the compressor. pg_dump writes straight into the compressor's input, so the data does not pass through this process. */
function startBoth(
  { command, env, compressor }: { command: Command; env: Record<string, string>; compressor: Command | null },
  signal: AbortSignal,
) {
  const second = compressor === null ? null : start(compressor, { env: programEnvironment, ownGroup: true });
  const first = start(command, { env, ownGroup: true, ...(second === null ? {} : { into: second.stdin }) });
  // Close our copy of the pipe: pg_dump now has the only one, so the compressor's input ends when pg_dump exits.
  second?.stdin.on("error", () => {}).destroy();
  first.stdin.on("error", () => {}).end();
  const dumped = endOf(first, signal);
  const compressed = second === null ? null : endOf(second, signal);
  return {
    content: (second ?? first).stdout,
    /** Throws unless the programs succeeded. The archive's reader must not see its end before this resolves. */
    check: async () => {
      const { exitCode, stderr } = await dumped;
      signal.throwIfAborted();
      if (exitCode !== 0) throw failureOfProgram("pg_dump", stderr);
      const end = await compressed;
      if (end !== null && end.exitCode !== 0) throw new Error(`zstd failed: ${end.stderr.slice(-500)}`);
    },
    halt: () => [first, second].forEach((child) => child && halt(child)),
    ended: Promise.all([dumped, compressed]),
  };
}

function rethrow(error: Error & { code?: string }): never {
  throw failureOfQuery(error);
}

// Skips tables of extensions, which the extension recreates, and temporary tables, which belong to a session. Counts partitions, not their parents.
const tablesQuery = `
  SELECT format('%I.%I', n.nspname, c.relname) AS "table"
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
  WHERE c.relkind = 'r' AND c.relpersistence <> 't' AND n.nspname <> 'information_schema' AND n.nspname NOT LIKE 'pg\\_%'
    AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e')
  ORDER BY 1`;

/** Counts each table's own rows in the connection's current transaction. Runs no code that the tables' owner wrote. */
async function countRows(client: Client, options: CountOptions): Promise<TableCount[]> {
  const { rows } = await client.query<{ table: string }>(tablesQuery);
  const counts: TableCount[] = [];
  for (const { table } of rows) {
    options.signal.throwIfAborted();
    const counted = await client.query<{ rows: string }>(`SELECT count(*) AS rows FROM ONLY ${table}`);
    counts.push({ table, rows: Number(counted.rows[0]?.rows) });
    options.onCounted?.({ counted: counts.length, tables: rows.length });
  }
  return counts;
}

const level = 3;
// A pipe delivers 64 KiB at a time; compressing such pieces one by one takes twice as long as large ones (measured).
const chunkSize = 1024 * 1024;
// A buffer for several pieces, so that pg_dump continues while one piece is compressed and another is written.
const highWaterMark = 8 * chunkSize;

/** Compresses in this process, for machines without zstd. An error of any stage reaches the reader of the returned stream. */
export function compressArchive(archive: AsyncIterable<Buffer>): Readable {
  const compress = createZstdCompress({
    ...{ chunkSize, highWaterMark },
    params: { [constants.ZSTD_c_compressionLevel]: level },
  });
  pipeline(archive, gathered, compress).catch(() => {});
  return compress;
}

/** Joins the chunks into larger ones. */
async function* gathered(source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let pieces: Buffer[] = [];
  let size = 0;
  for await (const piece of source) {
    pieces.push(piece);
    size += piece.length;
    if (size < chunkSize) continue;
    yield Buffer.concat(pieces, size);
    pieces = [];
    size = 0;
  }
  if (size > 0) yield Buffer.concat(pieces, size);
}
