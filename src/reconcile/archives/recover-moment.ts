import { createHash } from "node:crypto";
import * as backups from "../../features/backups/backups.ts";
import type { DatabaseRow } from "../../features/database/database.ts";
import {
  DatabaseWorkFailed,
  segmentName,
  type DatabaseHistory,
  type DatabaseSpec,
  type RecoveredInstance,
  type RecoverySource,
} from "../../ports/postgres-host.ts";
import { StorageFull, type Storage } from "../../ports/storage.ts";
import type { Work } from "../backups/backup-job.ts";
import type { Platform } from "../platform.ts";
import { endDamagedChain, storeLog } from "./store-log.ts";
import { LogDamaged, readLog } from "./stored-log.ts";

/** What recovers a database's instance as it was at a moment. */
export interface Moment {
  readonly platform: Platform;
  readonly row: DatabaseRow;
  readonly spec: DatabaseSpec;
  readonly history: DatabaseHistory;
  readonly at: Date;
  /** How many times the database's size must be free. */
  readonly copies: number;
  readonly onBytes: (bytes: number) => void;
  readonly signal: AbortSignal;
}

/** A claimed operation on such an instance. */
export interface MomentWork extends Work, Moment {
  /** The new database, if one is made. */
  readonly name: string;
}

/** What a moment is recovered from. */
export interface OpenedMoment {
  readonly source: RecoverySource;
  /** The name of the database that was live then. */
  readonly live: string;
  readonly chain: backups.ArchiveChain;
  readonly copy: { readonly key: string; readonly sha256: string; readonly made_at: string };
  /** Returns which log was applied, and the checksum of its bytes. */
  readonly log: () => { readonly first: string; readonly segments: number; readonly sha256: string };
}

/** A recovered instance, and what it was recovered from. */
export interface Recovered extends OpenedMoment {
  readonly recovered: RecoveredInstance;
}

/** Recovers the instance from the archive, or returns why there is no such moment. */
export async function recoverMoment(work: Moment): Promise<Recovered | { readonly problem: backups.Problem }> {
  const opened = await openMoment(work);
  if ("problem" in opened) return opened;
  const recovered = await work.history.recover(work.spec, opened.source);
  if (!(await recovered.listDatabases()).includes(opened.live))
    throw new DatabaseWorkFailed("refused", `The database ${opened.live} did not exist at that moment.`);
  return { ...opened, recovered };
}

/** Opens what shows the moment, or returns why there is no such moment. */
export async function openMoment(work: Moment): Promise<OpenedMoment | { readonly problem: backups.Problem }> {
  const { platform, row, spec, at, signal } = work;
  const found = await find(work);
  if (found === undefined) return { problem: await outside(work) };
  const { base, chain } = found;
  const storage = platform.ports.storages.named[chain.storage];
  if (storage === undefined)
    throw new DatabaseWorkFailed("missing", `It is in the storage "${chain.storage}", which is not configured.`);
  await requireRoomToRecover(work, found);
  const start = base.start_position ?? 0;
  const log = counting(platform, chain, readLog(storage, { ...found, start }, signal));
  const note = async (error: unknown): Promise<never> => {
    if (error instanceof backups.ArchiveDamaged) await endDamagedChain(platform, found, error);
    throw error;
  };
  const source = {
    archive: noting(await backups.openChecked(fileOf(work, storage, base)).catch(note), note),
    path: storage.path?.(base.storage_key),
    ...{ backup_label: base.backup_label ?? "", segment_bytes: chain.segment_bytes },
    ...{ segments: noting(log.segments, note), until: at, signal },
  };
  const live = await backups.liveNameAt(platform.db, row, at, spec.database_name);
  const copy = { key: base.storage_key, sha256: base.sha256 ?? "", made_at: base.restorable_from ?? base.created_at };
  return { source, live, chain, copy, log: () => ({ first: segmentName(chain, start), ...log.sum() }) };
}

async function* noting<T>(stored: AsyncIterable<T>, note: (error: unknown) => Promise<never>): AsyncGenerator<T> {
  try {
    yield* stored;
  } catch (error) {
    await note(error);
  }
}

function counting(
  { db }: Platform,
  chain: backups.ArchiveChain,
  given: AsyncIterable<{ readonly name: string; readonly content: Buffer }>,
) {
  const digest = createHash("sha256");
  let segments = 0;
  const all = (async function* () {
    try {
      for await (const segment of given) {
        digest.update(segment.content);
        segments += 1;
        yield segment;
      }
    } catch (error) {
      if (!(error instanceof LogDamaged)) throw error;
      const nearest = (await backups.momentsAround(db, chain, error.position)).join(" and ");
      throw new LogDamaged(error, error, nearest && ` The nearest moments that can be restored: ${nearest}.`);
    }
  })();
  return { segments: all, sum: () => ({ segments, sha256: digest.copy().digest("hex") }) };
}

/** Throws `StorageFull` when the data folder has no room for the copy, its log and what is made of it. */
async function requireRoomToRecover({ platform, copies, spec }: Moment, { base, end }: Found): Promise<void> {
  const seen = await platform.ports.postgresHost.observe(spec);
  const bytes = copies * (seen.state === "running" ? seen.size_bytes : 0) + end - (base.start_position ?? 0);
  const { available_bytes } = await platform.ports.dataDisk.observe();
  if (available_bytes < bytes) throw new StorageFull();
}

type Found = backups.Recovery<backups.ArchiveChain, backups.ArchiveCopy>;

async function find(work: Moment): Promise<Found | undefined> {
  const { platform, row, spec, history, at } = work;
  const known = await findStored(work);
  if (known?.hasMore === true) return known;
  const newest = (await backups.chainsOf(platform.db, row)).at(-1);
  const isOpen = newest?.ended_at === null;
  // The last seconds are still on their way, and perhaps no commit follows the moment yet, unless the database is away.
  if (isOpen || !newest?.stored_until || Date.parse(newest.stored_until) < at.getTime())
    await (isOpen ? history.commit(spec) : Promise.resolve())
      .then(() => storeNewest(work))
      .catch((error: unknown) =>
        platform.log.warn({ error: (error as Error).message }, "the newest log could not be stored before a restore"),
      );
  return findStored(work);
}

/** Finds what shows the moment, and whether more log is stored than it needs. */
async function findStored({ platform: { db }, row, at }: Moment): Promise<(Found & { hasMore: boolean }) | undefined> {
  const stored = await backups.chainsOf(db, row);
  const found = backups.recoveryOf(stored, await backups.copiesOf(db, stored), at);
  if (found === undefined) return undefined;
  const needed = await backups.endForMoment(db, found.chain, found.base, at);
  return { ...found, end: Math.min(found.end, needed ?? Infinity), hasMore: needed !== null };
}

async function storeNewest(work: Moment): Promise<void> {
  const { platform, row } = work;
  const { chain, until, isIdle } = await storeLog(platform, row, work);
  if (isIdle) await backups.confirmChains(platform.db, [chain.id], until);
}

async function outside({ platform, row }: Moment) {
  const chains = await backups.chainsOf(platform.db, row);
  return {
    code: "target_outside_window" as const,
    summary: backups.outsideText(backups.windowsOf(chains, await backups.copiesOf(platform.db, chains))),
  };
}

function fileOf({ onBytes, signal }: Moment, storage: Storage, { storage_key: key, sha256 }: backups.ArchiveCopy) {
  return { storage, key, sha256: sha256 ?? "", signal, onBytes };
}
