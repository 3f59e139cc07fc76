import { promisify } from "node:util";
import { Readable } from "node:stream";
import { constants, zstdCompress } from "node:zlib";
import * as backups from "../../features/backups/backups.ts";
import { specOf, type DatabaseRow } from "../../features/database/database.ts";
import { createKeyedMutex } from "../../kit/keyed-mutex.ts";
import { allTogether } from "../../kit/throw-together.ts";
import {
  DatabaseWorkFailed,
  segmentName,
  type DatabaseHistory,
  type LogPosition,
  type DatabaseSpec,
} from "../../ports/postgres-host.ts";
import { StorageMissing, type Storage } from "../../ports/storage.ts";
import type { Platform } from "../platform.ts";
import { LogDamaged, newestOf } from "./stored-log.ts";

const compress = promisify(zstdCompress);
// The checksum names a segment that the store has changed.
const params = { [constants.ZSTD_c_compressionLevel]: 1, [constants.ZSTD_c_checksumFlag]: 1 };

// A restore to a moment stores the newest log first, while the task does so every few seconds.
const oneAtATime = createKeyedMutex();

/** The open chains by their databases, as only this process adds to them: an idle database costs no query. */
const open = new Map<string, { readonly chain: backups.ArchiveChain; until: Date }>();

/** The moment up to which all log is stored now, and whether nothing has changed since the look before. */
export interface StoredLog {
  readonly chain: backups.ArchiveChain;
  readonly until: Date;
  readonly isIdle: boolean;
}

/** Stores what a database has logged since, the open segment too. Begins a new chain when the log does not continue the open one. */
export function storeLog(
  platform: Platform,
  row: DatabaseRow,
  { history, signal }: Pick<Storing, "history" | "signal">,
): Promise<StoredLog> {
  return oneAtATime(row.id, async () => {
    const log = await history.position(row);
    const chain = await chainFor(platform, row, log);
    const known = open.get(row.id);
    if (chain.stored_position === log.end && chain.stored_until !== null) {
      if (known === undefined) open.set(row.id, { chain, until: log.at });
      else known.until = log.at;
      return { chain, until: log.at, isIdle: known !== undefined };
    }
    open.delete(row.id);
    await storeSegments(platform, { chain, spec: specOf(platform.vault, row), history, log, signal });
    if (known !== undefined) await markBefore(platform, { ...known, end: log.end });
    const stored = { stored_position: log.end, stored_until: log.at.toISOString() };
    open.set(row.id, { chain: { ...chain, ...stored }, until: log.at });
    return { chain, until: log.at, isIdle: false };
  });
}

/** Marks how far the log went at the look before this one, where the segment of that is complete now. */
async function markBefore(
  { db }: Platform,
  { chain, until, end }: { readonly chain: backups.ArchiveChain; readonly until: Date; readonly end: number },
): Promise<void> {
  const { stored_position: position, segment_bytes: size } = chain;
  if (Math.floor(end / size) > Math.floor(position / size)) await backups.markChain(db, chain, position, until);
}

export async function endOpenChain(db: Platform["db"], chain: backups.ArchiveChain, reason: string): Promise<void> {
  open.delete(chain.database_id);
  await backups.endChain(db, chain.id, reason);
}

/**
 * Records that a copy, or log behind it, is missing or damaged, so that another copy is made where none needs less. Throws
 * `DatabaseWorkFailed` where the storage itself seems to be another one, such as a folder whose disk is not mounted.
 */
export async function recordDamage(
  { db, log, ports, wakeups }: Platform,
  { chain, base }: Pick<backups.Recovery, "chain" | "base">,
  error: backups.ArchiveDamaged,
): Promise<void> {
  const storage = ports.storages.named[chain.storage];
  if (storage !== undefined && error.cause instanceof StorageMissing && (await newestOf(storage, chain)) === undefined)
    throw new DatabaseWorkFailed("missing", `The storage "${chain.storage}" has nothing of the database's archive.`);
  log.warn({ err: error, copy: base.storage_key }, "a part of a database's archive was found damaged");
  await (error instanceof LogDamaged
    ? backups.recordLoss(db, chain, error.position)
    : backups.recordDamage(db, base.id));
  // The next look then finds that the database needs a copy, even if it has written nothing.
  open.delete(chain.database_id);
  await wakeups.send(db, "archives");
}

async function chainFor(platform: Platform, row: DatabaseRow, log: LogPosition): Promise<backups.ArchiveChain> {
  const { org_id, project_id, id: database_id } = row;
  const isOpen = (chain: backups.ArchiveChain) => chain.database_id === database_id && chain.ended_at === null;
  const chain = open.get(database_id)?.chain ?? (await backups.chainsOf(platform.db, row)).find(isOpen);
  const { standard } = platform.ports.storages;
  const reason = chain && whyEnded(chain, log, standard);
  if (chain !== undefined && reason === undefined) return chain;
  if (chain !== undefined && reason !== undefined) await endOpenChain(platform.db, chain, reason);
  return backups.beginChain(platform.db, { org_id, project_id, database_id, storage: standard }, log);
}

/** From then on, the times of a chain's transactions are in order no more. Smaller corrections of a clock are usual. */
const setBackMs = 1000;

/** Returns why a log does not continue a chain; undefined if it does. */
function whyEnded(chain: backups.ArchiveChain, log: LogPosition, storage: string): string | undefined {
  if (chain.log_system !== log.system || chain.timeline !== log.timeline || log.end < chain.stored_position)
    return "The database was restored, and began a history of its own.";
  if (log.at.getTime() < Date.parse(chain.stored_until ?? "") - setBackMs) return "The machine's clock was set back.";
  if (chain.storage !== storage) return `Backups are kept in the storage "${storage}" now.`;
  const needed = chain.stored_position - (chain.stored_position % chain.segment_bytes);
  return log.kept_from <= needed
    ? undefined
    : "The log could not be stored for so long that the database had to drop it.";
}

interface Storing {
  readonly chain: backups.ArchiveChain;
  readonly spec: DatabaseSpec;
  readonly history: DatabaseHistory;
  readonly log: LogPosition;
  readonly signal: AbortSignal;
}

/** How much log is stored at once, as each segment waits for the storage. */
export const atOnceBytes = 8 * 1024 ** 2;

async function storeSegments(platform: Platform, storing: Storing): Promise<void> {
  const { chain, spec, history, log } = storing;
  const { segment_bytes: size } = log;
  const most = Math.max(1, atOnceBytes / size);
  let position = chain.stored_position;
  for (let isWhole = false; !isWhole;) {
    const ends: number[] = [];
    for (let at = position; at < log.end && ends.length < most; at = ends.at(-1) as number)
      ends.push(Math.min(at - (at % size) + size, log.end));
    // One that is still on its way after another has failed could replace what a later look stores of the newest segment.
    const stored = await allTogether(ends.map((end) => storeSegment(platform, storing, end)));
    position = ends.at(-1) ?? position;
    isWhole = position === log.end;
    const bytes = stored.reduce((sum, each) => sum + each, 0);
    await backups.advanceChain(platform.db, chain, { position, until: isWhole ? log.at : null, bytes });
  }
  const before = position - (position % size);
  if (before > log.kept_from) await history.release(spec, before);
}

/** Stores a segment up to `end`, and returns its size there if it is whole now. */
async function storeSegment(platform: Platform, storing: Storing, end: number): Promise<number> {
  const { chain, spec, history, log, signal } = storing;
  const storage = platform.ports.storages.named[chain.storage] as Storage;
  const content = await compress(await history.readSegment(spec, log, end), { params });
  await storage.put(
    `${backups.archiveFolder(chain)}/${segmentName(log, end - 1)}.zst`,
    Readable.from([content]),
    signal,
  );
  return end % log.segment_bytes === 0 ? content.length : 0;
}
