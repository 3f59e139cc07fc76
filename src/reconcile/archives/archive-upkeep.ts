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
export async function dropUnfinishedCopies({ db, ports, log }: Platform): Promise<void> {
  for (const { id, storage, storage_key } of await backups.unfinishedCopies(db))
    try {
      await ports.storages.named[storage]?.delete(storage_key);
      await backups.deleteCopy(db, id);
    } catch (error) {
      log.warn({ err: error, copy: id }, "an unfinished copy could not be deleted");
    }
}

/** Deletes what shows only moments before the retention, or is over the project's limit; then the log that nothing needs. */
export async function applyArchiveRetention(platform: Platform, row: DatabaseRow): Promise<void> {
  const { db, clock, settings } = platform;
  const chains = await backups.chainsOf(db, row);
  const chainOf = ({ chain_id }: backups.ArchiveCopy) =>
    chains.find(({ id }) => id === chain_id) as backups.ArchiveChain;
  const bases = await backups.copiesOf(db, chains);
  const isLocal = (base: backups.ArchiveCopy) => chainOf(base).storage === "disk";
  const { limits } = await diskUseOf(db, row, settings.disk);
  const keep = { days: settings.backups.archiveDays, limitBytes: limits.backups_bytes, isLocal, now: clock.now() };
  for (const base of backups.oldCopies(bases, keep)) {
    const chain = chainOf(base);
    const next = bases.find((each) => each.chain_id === chain.id && each.status === "completed" && each.id > base.id);
    await dropCopy(platform, { chain, base, next });
  }
  const left = new Set((await backups.copiesOf(db, chains)).map(({ chain_id }) => chain_id));
  for (const chain of chains)
    if (chain.ended_at !== null && !left.has(chain.id)) await backups.expireChain(db, chain.id);
}

async function dropCopy(
  { db, ports }: Platform,
  {
    chain,
    base,
    next,
  }: { chain: backups.ArchiveChain; base: backups.ArchiveCopy; next: backups.ArchiveCopy | undefined },
): Promise<void> {
  const storage = ports.storages.named[chain.storage];
  // Files in a storage that is not configured now are deleted once it is again.
  if (storage === undefined) return;
  await backups.abandonCopy(db, base.id);
  await storage.delete(base.storage_key);
  await backups.deleteCopy(db, base.id);
  if (typeof next?.start_position === "number") await dropLog(storage, { db, chain, before: next.start_position });
}

/** Deletes the segments of a chain that end at or before this position. */
async function dropLog(
  storage: Storage,
  { db, chain, before }: Pick<Platform, "db"> & { chain: backups.ArchiveChain; before: number },
): Promise<void> {
  const { first_position: first, segment_bytes: size } = chain;
  for (let at = first; at + size <= before; at += size) await storage.delete(logKey(chain, at));
  await backups.shortenChain(db, chain.id, before - (before % size));
}

/** Deletes the files and rows of chains that nothing shows any more. */
export async function deleteExpiredChains(platform: Platform): Promise<void> {
  const { db, ports } = platform;
  await backups.expirePurgedChains(db);
  for (const chain of await backups.expiredChains(db)) {
    const storage = ports.storages.named[chain.storage];
    if (storage === undefined) continue;
    for (const { storage_key } of await backups.copiesOf(db, [chain])) await storage.delete(storage_key);
    await dropLog(storage, { db, chain, before: await endOfLog(storage, chain) });
    const newest = await newestOf(storage, chain);
    if (newest?.chain.id === chain.id) {
      await storage.delete(newest.base.storage_key);
      await forgetNewest(storage, chain);
    }
    await backups.deleteChain(db, chain.id);
  }
}

/**
 * Returns where a chain's stored log ends at most: behind what its row says, if a platform was restored whose last backup is older. Of the
 * segments that were stored at once when a look failed, some may be missing before others.
 */
async function endOfLog(storage: Storage, chain: backups.ArchiveChain): Promise<number> {
  const { stored_position: known, segment_bytes: size } = chain;
  let end = known - (known % size) + size * (1 + Math.ceil(atOnceBytes / size));
  while (await isStored(storage, logKey(chain, end))) end += size;
  return end;
}

async function isStored(storage: Storage, key: string): Promise<boolean> {
  try {
    (await storage.open(key)).destroy();
    return true;
  } catch (error) {
    if (error instanceof backups.ArchiveDamaged) return true;
    if (error instanceof StorageMissing) return false;
    throw error;
  }
}

const logKey = (chain: backups.ArchiveChain, at: number) =>
  `${backups.archiveFolder(chain)}/${segmentName(chain, at)}.zst`;
