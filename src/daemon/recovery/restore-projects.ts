import { createReadStream, existsSync } from "node:fs";
import { Readable } from "node:stream";
import { bundleOf } from "../../adapters/platform-archive-age/age-platform-archive.ts";
import {
  ArchiveDamaged,
  completedBackups,
  openChecked,
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
import { newestOf, readLog } from "../../reconcile/archives/stored-log.ts";
import type { Platform } from "../../reconcile/platform.ts";

const concurrent = 2;
const never = new AbortController().signal;

/** One part of a project: when the state that is back was taken (RFC 3339), or why it is not back. */
export interface RestoredPart {
  /** Such as `acme/shop`. */
  readonly subject: string;
  readonly part: "repository" | "database" | "files";
  readonly taken_at: string | null;
  readonly problem: string | null;
}

/** The blocks that end a tar archive. */
const emptyArchive = Buffer.alloc(1024);

type Restore = (platform: Platform, project: KeptProject, repositories: string) => Promise<string | null | undefined>;

/** Each resolves with when the state was taken, null for the platform's own backup, undefined when the project has no such part. */
const restores: Readonly<Record<RestoredPart["part"], Restore>> = {
  async repository({ ports }, { id, was_built }, repositories) {
    const bundle = bundleOf({ repositories }, id);
    if (!existsSync(bundle) && was_built) throw new Error("It is not in the backup: push again, or try an older one.");
    if (!existsSync(bundle)) return undefined;
    await ports.repositories.unpack(id, createReadStream(bundle));
    return null;
  },

  async database(platform, { id, org_id }) {
    const row = await databaseOf(platform.db, org_id, id);
    if (!row?.ready_at) return undefined;
    // A database on the server of BERTH_PG_URL was not on the lost machine.
    const seen = await platform.ports.postgresHost.observe(specOf(platform.vault, row));
    return seen.state === "running" ? undefined : restoreDatabase(platform, row);
  },

  async files(platform, { id: project_id, org_id, number: project_number, storage_bytes }) {
    const { db, ports } = platform;
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
    return firstReadable(backups, restore).catch(async (error) => {
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
      try {
        const taken_at = await restore(platform, project, repositories);
        if (taken_at !== undefined) onRestored({ ...about, taken_at, problem: null });
      } catch (error) {
        // Every later part would fail, too.
        if (diskFault(error) === "full") throw error;
        onRestored({ ...about, taken_at: null, problem: error instanceof Error ? error.message : String(error) });
      }
    }
  });
}

async function restoreDatabase(platform: Platform, row: DatabaseRow): Promise<string> {
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
    const problems: string[] = [];
    const newest = { row, interim, since: backups[0]?.created_at, problems };
    const taken_at =
      (await restoreArchive(platform, newest, { place, restore })) ??
      (await firstReadable(
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
  /** Receives why an archive is not used. */
  readonly problems: string[];
}

/** Restores a database up to its archive's last transaction, whose time it resolves with; undefined if a backup is newer or all there is. */
async function restoreArchive(
  { ports, vault }: Platform,
  { row, interim, since, problems }: Newest,
  { place, restore }: { place: () => Promise<void>; restore: (archive: Readable) => Promise<void> },
): Promise<string | undefined> {
  const history = ports.postgresHost.history(row.id);
  if (history === null) return undefined;
  for (const storage of Object.values(ports.storages.named)) {
    const found = await newestOf(storage, row);
    if (found === undefined) continue;
    try {
      const { storage_key: key, sha256, backup_label, start } = found.base;
      const recovered = await history.recover(interim, {
        archive: await openChecked({ storage, key, sha256, signal: never, onBytes: () => {} }),
        ...{ backup_label, segment_bytes: found.chain.segment_bytes, until: null, signal: never },
        segments: readLog(storage, { chain: found.chain, start, end: null }, never),
      });
      const { last_commit_at } = recovered;
      const at = last_commit_at ?? new Date(found.base.at);
      if (since !== undefined && at < new Date(since)) continue;
      await place();
      await recovered.dump(specOf(vault, row).database_name, { isCompressed: false, signal: never, consume: restore });
      return at.toISOString();
    } catch (error) {
      if (!(error instanceof ArchiveDamaged || error instanceof DatabaseWorkFailed)) throw error;
      problems.push(`The archive: ${error.message}`);
    } finally {
      await history.discardRecovered(row.id);
    }
  }
  return undefined;
}

function fileOf({ ports }: Platform, { storage, storage_key, sha256 }: CompletedBackup) {
  const store = ports.storages.named[storage ?? ""];
  if (store === undefined) throw new ArchiveDamaged(`It is in the storage "${storage}", which is not configured.`);
  return { storage: store, key: storage_key ?? "", sha256: sha256 ?? "", signal: never, onBytes: () => {} };
}

/** Tries one backup after another until one can be restored, and resolves with when it was taken. */
async function firstReadable(
  backups: readonly CompletedBackup[],
  restore: (backup: CompletedBackup) => Promise<void>,
  problems: string[] = [],
): Promise<string> {
  for (const backup of backups) {
    try {
      await restore(backup);
      return backup.created_at;
    } catch (error) {
      const isItsOwn = [ArchiveDamaged, DatabaseWorkFailed, FilesRefused].some((kind) => error instanceof kind);
      if (!isItsOwn) throw error;
      problems.push(`${backup.id}: ${(error as Error).message}`);
    }
  }
  throw new Error(problems[0] ?? "It had no backup yet.");
}
