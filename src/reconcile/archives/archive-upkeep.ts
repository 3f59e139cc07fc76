import * as backups from "../../features/backups/backups.ts";
import { specOf, type DatabaseRow } from "../../features/database/database.ts";
import { diskUseOf } from "../../features/disk/disk.ts";
import { segmentName, type CopySummary, type DatabaseHistory } from "../../ports/postgres-host.ts";
import { StorageMissing, type Storage } from "../../ports/storage.ts";
import type { Platform } from "../platform.ts";
import { atOnceBytes } from "./store-log.ts";
import { forgetNewest, newestOf, noteNewest } from "./stored-log.ts";

/** Copies a database's instance into its open chain. Leaves nothing behind when it fails. */
export async function makeCopy(
  platform: Platform,
  { row, chain, history }: { row: DatabaseRow; chain: backups.ArchiveChain; history: DatabaseHistory },
  signal: AbortSignal,
): Promise<void> {
  const { db, ports, vault } = platform;
  const storage = ports.storages.named[chain.storage] as Storage;
  const { id, storage_key: key } = await backups.beginCopy(db, chain);
  try {
    let stored: { size_bytes: number; sha256: string } | undefined;
    const copied: CopySummary = await history.copy(specOf(vault, row), {
      signal,
      consume: async (archive) =>
        void (stored = await backups.packArchive(archive, { storage, key, signal, onBytes: () => {} })),
    });
    if (copied.system !== chain.log_system || stored === undefined)
      throw new backups.ArchiveDamaged("The database changed.");
    await backups.completeCopy(db, id, { ...copied, ...stored });
    const { start, backup_label } = copied;
    const base = { start, backup_label, at: copied.at.toISOString(), storage_key: key, sha256: stored.sha256 };
    await noteNewest(storage, { chain, base });
  } catch (error) {
    // What is not deleted now is deleted later, as an unfinished copy.
    if (!signal.aborted)
      await storage.delete(key).then(
        () => backups.deleteCopy(db, id),
        () => {},
      );
    throw error;
  }
}

/** Deletes the copies that no process finishes any more. Those in a storage that is away are left to the next time. */
export async function dropUnfinishedCopies({ db, ports, log }: Platform, signal: AbortSignal): Promise<void> {
  for (const { id, storage, storage_key } of await backups.unfinishedCopies(db))
    try {
      await ports.storages.named[storage]?.delete(storage_key, signal);
      await backups.deleteCopy(db, id);
    } catch (error) {
      signal.throwIfAborted();
      log.warn({ err: error, copy: id }, "an unfinished copy could not be deleted");
    }
}

/**
 * Deletes what shows only moments before the retention, or is over the project's limit; then the log that nothing needs. The signal ends
 * it between two files: each row goes after its files, so the next time goes on.
 */
export async function applyArchiveRetention(platform: Platform, row: DatabaseRow, signal: AbortSignal): Promise<void> {
  const { db, clock, ports, settings } = platform;
  const chains = await backups.chainsOf(db, row);
  const storageOf = ({ chain_id }: backups.ArchiveCopy) => chains.find(({ id }) => id === chain_id)?.storage ?? "";
  const isLocal = (base: backups.ArchiveCopy) => storageOf(base) === "disk";
  const { limits } = await diskUseOf(db, row, settings.disk);
  const keep = { days: settings.backups.archiveDays, limitBytes: limits.backups_bytes, isLocal, now: clock.now() };
  for (const base of backups.oldCopies(await backups.copiesOf(db, chains), keep)) {
    const storage = ports.storages.named[storageOf(base)];
    // Files in a storage that is not configured now are deleted once it is again.
    if (storage === undefined) continue;
    await backups.abandonCopy(db, base.id);
    await storage.delete(base.storage_key, signal);
    await backups.deleteCopy(db, base.id);
  }
  const left = Map.groupBy(await backups.copiesOf(db, chains), ({ chain_id }) => chain_id);
  for (const chain of chains) {
    const storage = ports.storages.named[chain.storage];
    const before = left.get(chain.id)?.find(({ status }) => status !== "copying")?.start_position;
    // What a look stores now is deleted at the next time, as the log may be stored less far than a new copy needs it.
    const stored = Math.min(before ?? 0, chain.stored_position);
    if (storage !== undefined) await dropLog(storage, { db, chain, before: stored, signal });
    if (chain.ended_at !== null && !left.has(chain.id)) await backups.expireChain(db, chain.id);
  }
}

/** Deletes the segments of a chain that end at or before this position. */
async function dropLog(
  storage: Storage,
  {
    db,
    chain,
    before,
    signal,
  }: Pick<Platform, "db"> & { chain: backups.ArchiveChain; before: number; signal: AbortSignal },
): Promise<void> {
  const { first_position: first, segment_bytes: size } = chain;
  if (first + size > before) return;
  for (let at = first; at + size <= before; at += size) await storage.delete(logKey(chain, at), signal);
  await backups.shortenChain(db, chain.id, before - (before % size));
}

/** Deletes the files and rows of chains that nothing shows any more. */
export async function deleteExpiredChains(platform: Platform, signal: AbortSignal): Promise<void> {
  const { db, ports } = platform;
  await backups.expirePurgedChains(db);
  for (const chain of await backups.expiredChains(db)) {
    const storage = ports.storages.named[chain.storage];
    if (storage === undefined) continue;
    for (const { storage_key } of await backups.copiesOf(db, [chain])) await storage.delete(storage_key, signal);
    await dropLog(storage, { db, chain, before: await endOfLog(storage, chain, signal), signal });
    const newest = await newestOf(storage, chain);
    if (newest?.chain.id === chain.id) {
      await storage.delete(newest.base.storage_key, signal);
      await forgetNewest(storage, chain);
    }
    await backups.deleteChain(db, chain.id);
  }
}

/**
 * Returns where a chain's stored log ends at most: behind what its row says, if a platform was restored whose last backup is older. Of the
 * segments that were stored at once when a look failed, some may be missing before others.
 */
async function endOfLog(storage: Storage, chain: backups.ArchiveChain, signal: AbortSignal): Promise<number> {
  const { stored_position: known, segment_bytes: size } = chain;
  let end = known - (known % size) + size * (1 + Math.ceil(atOnceBytes / size));
  while (await isStored(storage, logKey(chain, end), signal)) end += size;
  return end;
}

async function isStored(storage: Storage, key: string, signal: AbortSignal): Promise<boolean> {
  try {
    (await storage.open(key, signal)).destroy();
    return true;
  } catch (error) {
    if (error instanceof backups.ArchiveDamaged) return true;
    if (error instanceof StorageMissing) return false;
    throw error;
  }
}

const logKey = (chain: backups.ArchiveChain, at: number) =>
  `${backups.archiveFolder(chain)}/${segmentName(chain, at)}.zst`;
