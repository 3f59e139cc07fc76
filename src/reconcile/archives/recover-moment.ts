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
import { StorageFull } from "../../ports/storage.ts";
import type { Work } from "../backups/backup-job.ts";
import type { Platform } from "../platform.ts";
import { recordDamage, storeLog } from "./store-log.ts";
import { copyOf, LogDamaged, openCopy } from "./stored-log.ts";

/** What recovers a database's instance as it was at a moment. */
export interface Moment {
  readonly platform: Platform;
  readonly row: DatabaseRow;
  readonly spec: DatabaseSpec;
  readonly history: DatabaseHistory;
  readonly at: Date;
  /** Whether an older copy may show it if the newest is damaged. */
  readonly mayPassDamaged: boolean;
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
  /** When the newer copies were made that were found damaged. */
  readonly damaged_copies: readonly string[];
  /** Returns which log was applied, and the checksum of its bytes. */
  readonly log: () => { readonly first: string; readonly segments: number; readonly sha256: string };
}

/** A recovered instance, and what it was recovered from. */
export interface Recovered extends OpenedMoment {
  readonly recovered: RecoveredInstance;
}

/** Recovers the instance from the archive, or returns why there is no such moment. */
export function recoverMoment(work: Moment): Promise<Recovered | { readonly problem: backups.Problem }> {
  return useMoment(work, async (opened) => {
    const recovered = await work.history.recover(work.spec, opened.source);
    if (!(await recovered.listDatabases()).includes(opened.live))
      throw new DatabaseWorkFailed("refused", `The database ${opened.live} did not exist at that moment.`);
    return { ...opened, recovered };
  });
}

/**
 * Uses what shows the moment, or returns why there is no such moment. What is found damaged is recorded. Of several copies that show it,
 * the newest one is used that is whole, except by a drill, which proves the newest.
 */
export async function useMoment<T>(
  work: Moment,
  use: (opened: OpenedMoment) => Promise<T>,
): Promise<T | { readonly problem: backups.Problem }> {
  const { platform, row, at } = work;
  const found = await find(work);
  if (found.length === 0) return { problem: await outside(work) };
  const damaged: string[] = [];
  const mayPass = async (error: Error, each: Found) => {
    if (!(error instanceof backups.ArchiveDamaged)) return false;
    await recordDamage(platform, each, error);
    if (error instanceof LogDamaged) {
      const { spans } = await backups.readSpans(platform.db, await backups.chainsOf(platform.db, row));
      const nearest = backups.nearestTo(backups.windowsOf(spans), at).join(" and ");
      throw new LogDamaged(error, error, nearest && ` The nearest moments that can be restored: ${nearest}.`);
    }
    damaged.push(copyOf(each.base).at);
    return work.mayPassDamaged && each !== found.at(-1);
  };
  const used = await backups.firstReadable(found, async (each) => use(await open(work, each, damaged)), mayPass);
  return used as T;
}

async function open(work: Moment, found: Found, damaged_copies: readonly string[]): Promise<OpenedMoment> {
  const { platform, row, spec, at: until, signal, onBytes } = work;
  const { chain, base, end } = found;
  const storage = platform.ports.storages.named[chain.storage];
  if (storage === undefined)
    throw new DatabaseWorkFailed("missing", `It is in the storage "${chain.storage}", which is not configured.`);
  await requireRoomToRecover(work, found);
  const copy = copyOf(base);
  const opened = await openCopy(storage, { chain, base: copy, end }, { until, signal, onBytes });
  const live = await backups.liveNameAt(platform.db, row, until, spec.database_name);
  const { segments, sum } = counting(opened.segments);
  return {
    source: { ...opened, segments },
    ...{ live, chain, damaged_copies },
    copy: { key: copy.storage_key, sha256: copy.sha256, made_at: copy.at },
    log: () => ({ first: segmentName(chain, copy.start), ...sum() }),
  };
}

function counting(given: RecoverySource["segments"]) {
  const digest = createHash("sha256");
  let count = 0;
  const segments = (async function* () {
    for await (const segment of given) {
      digest.update(segment.content);
      count += 1;
      yield segment;
    }
  })();
  return { segments, sum: () => ({ segments: count, sha256: digest.copy().digest("hex") }) };
}

/** Throws `StorageFull` when the data folder has no room for the copy, its log and what is made of it. */
async function requireRoomToRecover({ platform, copies, spec }: Moment, { base, end }: Found): Promise<void> {
  const seen = await platform.ports.postgresHost.observe(spec);
  const bytes = copies * (seen.state === "running" ? seen.size_bytes : 0) + end - (base.start_position ?? 0);
  const { available_bytes } = await platform.ports.dataDisk.observe();
  if (available_bytes < bytes) throw new StorageFull();
}

type Found = backups.Recovery;

async function find(work: Moment): Promise<readonly Found[]> {
  const { platform, row, spec, history, at } = work;
  const known = await findStored(work);
  if (known.hasMore) return known.found;
  const newest = (await backups.chainsOf(platform.db, row)).at(-1);
  const isOpen = newest?.ended_at === null;
  // The last seconds are still on their way, and perhaps no commit follows the moment yet, unless the database is away.
  if (isOpen || !newest?.stored_until || Date.parse(newest.stored_until) < at.getTime())
    await (isOpen ? history.commit(spec) : Promise.resolve())
      .then(() => storeNewest(work))
      .catch((error: unknown) =>
        platform.log.warn({ error: (error as Error).message }, "the newest log could not be stored before a restore"),
      );
  return (await findStored(work)).found;
}

/** Finds what shows the moment, and whether more log is stored than it needs. */
async function findStored({ platform: { db }, row, at }: Moment) {
  const { spans } = await backups.readSpans(db, await backups.chainsOf(db, row));
  const found = backups.recoveriesOf(spans, at);
  const needed = found[0] && (await backups.endForMoment(db, found[0].chain, found[0].base, at));
  const hasMore = typeof needed === "number";
  return { found: found.map((each) => ({ ...each, end: Math.min(each.end, needed ?? Infinity) })), hasMore };
}

async function storeNewest(work: Moment): Promise<void> {
  const { platform, row } = work;
  const { chain, until } = await storeLog(platform, row, work);
  await backups.confirmChains(platform.db, [chain.id], until);
}

async function outside({ platform: { db }, row }: Moment) {
  const { spans } = await backups.readSpans(db, await backups.chainsOf(db, row));
  return { code: "target_outside_window" as const, summary: backups.outsideText(backups.windowsOf(spans)) };
}
