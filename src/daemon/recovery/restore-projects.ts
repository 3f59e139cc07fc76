import { createReadStream, existsSync } from "node:fs";
import { Readable } from "node:stream";
import { bundleOf } from "../../adapters/platform-archive-age/age-platform-archive.ts";
import {
  ArchiveDamaged,
  chainsOf,
  completedBackups,
  copiesOf,
  firstReadable,
  readPieces,
  unpackArchive,
  type CompletedBackup,
} from "../../features/backups/backups.ts";
import { databaseOf, specOf, type DatabaseRow } from "../../features/database/database.ts";
import { keptProjects, type KeptProject } from "../../features/platform/platform.ts";
import { diskFault } from "../../kit/disk-fault.ts";
import { emptyFolderBytes } from "../../kit/folder-bytes.ts";
import { FilesRefused } from "../../kit/folder-tar.ts";
import { mapWithConcurrency } from "../../kit/map-with-concurrency.ts";
import { DatabaseWorkFailed, type DatabaseSpec } from "../../ports/postgres-host.ts";
import { copyOf, LogDamaged, newestOf, openCopy, type NewestCopy } from "../../reconcile/archives/stored-log.ts";
import type { Storage } from "../../ports/storage.ts";
import type { Platform } from "../../reconcile/platform.ts";

const concurrent = 2;
const never = new AbortController().signal;

/** One part of a project: when the state that is back was taken (RFC 3339), and why it, or what came later, is not back. */
export interface RestoredPart {
  /** Such as `acme/shop`. */
  readonly subject: string;
  readonly part: "repository" | "database" | "files";
  readonly taken_at: string | null;
  readonly problem: string | null;
}

/** The blocks that end a tar archive. */
const emptyArchive = Buffer.alloc(1024);

interface Wanted {
  readonly project: KeptProject;
  /** The folder of the platform's own backup. */
  readonly repositories: string;
  /** Receives why what is newer is not back. */
  readonly problems: string[];
}

type Restore = (platform: Platform, wanted: Wanted) => Promise<string | null | undefined>;

/** Each resolves with when the state was taken, null for the platform's own backup, undefined when the project has no such part. */
const restores: Readonly<Record<RestoredPart["part"], Restore>> = {
  async repository({ ports }, { project: { id, was_built }, repositories }) {
    const bundle = bundleOf({ repositories }, id);
    if (!existsSync(bundle) && was_built) throw new Error("It is not in the backup: push again, or try an older one.");
    if (!existsSync(bundle)) return undefined;
    await ports.repositories.unpack(id, createReadStream(bundle));
    return null;
  },

  async database(platform, { project, problems }) {
    const row = await databaseOf(platform.db, project.org_id, project.id);
    if (!row?.ready_at) return undefined;
    // A database on the server of BERTH_PG_URL was not on the lost machine.
    const seen = await platform.ports.postgresHost.observe(specOf(platform.vault, row));
    return seen.state === "running" ? undefined : restoreDatabase(platform, row, problems);
  },

  async files(platform, { project, problems }) {
    const { db, ports } = platform;
    const { id: project_id, org_id, number: project_number, storage_bytes } = project;
    const owner = { project_id, project_number };
    const backups = await completedBackups(db, { org_id, project_id }, "files");
    // What was measured last may be older than the files.
    if (backups.length === 0 && storage_bytes <= emptyFolderBytes) {
      if (storage_bytes > 0) await ports.runtime.writeStorage(owner, null, Readable.from([emptyArchive]), never);
      return undefined;
    }
    const restore = async (backup: CompletedBackup) => {
      await ports.runtime.removeStorage(owner);
      const { storage: _, ...list } = fileOf(platform, backup);
      await ports.runtime.writeStorage(owner, null, readPieces(list, backup.storage ?? "", ports.storages), never);
    };
    return restoreFirst(backups, restore, problems).catch(async (error) => {
      await ports.runtime.removeStorage(owner);
      throw error;
    });
  },
};

/**
 * Gives each project its repository from an unpacked backup of the platform, and its database and files from their own newest backups that
 * can be read. Goes on after a part that fails, except for a full disk. The databases' servers are stopped afterwards.
 */
export async function restoreProjects(
  platform: Platform,
  repositories: string,
  onRestored: (part: RestoredPart) => void,
): Promise<void> {
  await mapWithConcurrency(await keptProjects(platform.db), concurrent, async (project) => {
    for (const [part, restore] of Object.entries(restores) as [RestoredPart["part"], Restore][]) {
      const about = { subject: project.subject, part };
      const problems: string[] = [];
      try {
        const taken_at = await restore(platform, { project, repositories, problems });
        if (taken_at !== undefined) onRestored({ ...about, taken_at, problem: problems[0] ?? null });
      } catch (error) {
        // Every later part would fail, too.
        if (diskFault(error) === "full") throw error;
        onRestored({ ...about, taken_at: null, problem: error instanceof Error ? error.message : String(error) });
      }
    }
  });
}

async function restoreDatabase(platform: Platform, row: DatabaseRow, problems: string[]): Promise<string> {
  const { db, vault, ports } = platform;
  const host = ports.postgresHost;
  const spec: DatabaseSpec = { ...specOf(vault, row), was_ready: false };
  // A host restores only beside the live database, so until then another one is the live one.
  const interim = { ...spec, database_name: "restoring", access: "open" } as const;
  await host.ensure(interim);
  try {
    const backups = await completedBackups(db, row, "database");
    const place = async () => {
      await host.dropDatabase(interim, spec.database_name);
      await host.createDatabase(interim, spec.database_name);
    };
    const restore = (archive: Readable) => host.restore(interim, spec.database_name, { archive, signal: never });
    const newest = { row, interim, since: backups[0]?.created_at, problems };
    const taken_at =
      (await restoreArchive(platform, newest, { place, restore })) ??
      (await restoreFirst(
        backups,
        async (backup) => {
          await place();
          await restore(await unpackArchive(fileOf(platform, backup)));
        },
        problems,
      ));
    await host.ensure(spec);
    await host.dropDatabase(spec, interim.database_name);
    await host.stop(row.id);
    return taken_at;
  } catch (error) {
    // Without its data it is a missing database, and not silently a new one.
    await host.destroy(row.id);
    throw error;
  }
}

interface Newest {
  readonly row: DatabaseRow;
  readonly interim: DatabaseSpec;
  /** When the newest backup was made. */
  readonly since: string | undefined;
  readonly problems: string[];
}

/** Restores a database up to its archive's last transaction, whose time it resolves with; undefined if a backup is newer or all there is. */
async function restoreArchive(
  platform: Platform,
  { row, interim, since, problems }: Newest,
  { place, restore }: { place: () => Promise<void>; restore: (archive: Readable) => Promise<void> },
): Promise<string | undefined> {
  const { ports, vault } = platform;
  const history = ports.postgresHost.history(row.id);
  if (history === null) return undefined;
  const readCopy = async ({ storage, chain, base }: StoredCopy) => {
    const lost: string[] = [];
    try {
      const source = await openCopy(storage, { chain, base, end: null }, { until: null, signal: never });
      const recovered = await history.recover(interim, { ...source, segments: upToLoss(source.segments, lost) });
      const at = recovered.last_commit_at ?? new Date(base.at);
      // Nor do older copies show anything newer.
      if (since !== undefined && at < new Date(since)) return undefined;
      await place();
      await recovered.dump(specOf(vault, row).database_name, { isCompressed: false, signal: never, consume: restore });
      problems.splice(0, problems.length, ...lost);
      return at.toISOString();
    } catch (error) {
      problems.push(...lost);
      throw error;
    } finally {
      await history.discardRecovered(row.id);
    }
  };
  const copies = await archivedCopies(platform, row);
  return firstReadable(copies, readCopy, (error) => mayPass(error, "The archive", problems));
}

type StoredCopy = NewestCopy & { readonly storage: Storage };

/** Returns the copies in a database's archives, newest first: those that storages name, and those that the platform's own backup knows. */
async function archivedCopies({ db, ports }: Platform, row: DatabaseRow): Promise<readonly StoredCopy[]> {
  const { named } = ports.storages;
  const found = await Promise.all(
    Object.values(named).map(async (storage) => {
      const newest = await newestOf(storage, row);
      return newest === undefined ? [] : [{ storage, ...newest }];
    }),
  );
  const chains = await chainsOf(db, row);
  const known = (await copiesOf(db, chains)).flatMap((copy) => {
    const chain = chains.find(({ id }) => id === copy.chain_id);
    const storage = named[chain?.storage ?? ""];
    return chain && storage && copy.restorable_from !== null ? [{ storage, chain, base: copyOf(copy) }] : [];
  });
  const all = new Map([...known, ...found.flat()].map((copy) => [copy.base.storage_key, copy]));
  return [...all.values()].toSorted((one, other) => Date.parse(other.base.at) - Date.parse(one.base.at));
}

/** Passes log on up to the first segment that is lost, if one is. */
async function* upToLoss<T>(log: AsyncIterable<T>, lost: string[]): AsyncGenerator<T> {
  try {
    yield* log;
  } catch (error) {
    if (!(error instanceof LogDamaged)) throw error;
    lost.push(error.message);
  }
}

function fileOf({ ports }: Platform, { storage, storage_key, sha256 }: CompletedBackup) {
  const store = ports.storages.named[storage ?? ""];
  if (store === undefined) throw new ArchiveDamaged(`It is in the storage "${storage}", which is not configured.`);
  return { storage: store, key: storage_key ?? "", sha256: sha256 ?? "", signal: never, onBytes: () => {} };
}

/** Restores from the first of these backups that can be read, and resolves with when it was taken. */
async function restoreFirst(
  backups: readonly CompletedBackup[],
  restore: (backup: CompletedBackup) => Promise<void>,
  problems: string[],
): Promise<string> {
  const read = (backup: CompletedBackup) => restore(backup).then(() => backup.created_at);
  const taken_at = await firstReadable(backups, read, (error, { id }) => mayPass(error, id, problems));
  if (taken_at === undefined) throw new Error(problems[0] ?? "It had no backup yet.");
  return taken_at;
}

/** Notes what is damaged or cannot be restored, and returns whether another one may be tried. */
function mayPass(error: Error, of: string, problems: string[]): boolean {
  const isItsOwn = [ArchiveDamaged, DatabaseWorkFailed, FilesRefused].some((kind) => error instanceof kind);
  if (isItsOwn) problems.push(`${of}: ${error.message}`);
  return isItsOwn;
}
