import {
  copiesOf,
  chainsOf,
  insertRestored,
  liveNameAt,
  openChecked,
  outsideText,
  recoveryOf,
  windowsOf,
  type ArchiveCopy,
  type ArchiveChain,
  type Recovery,
} from "../../features/backups/backups.ts";
import { databaseOf, specOf, type DatabaseRow } from "../../features/database/database.ts";
import {
  type DatabaseHistory,
  DatabaseWorkFailed,
  type DatabaseSpec,
  type TableCount,
} from "../../ports/postgres-host.ts";
import { StorageFull, type Storage } from "../../ports/storage.ts";
import { requireLease } from "../../store/leases.ts";
import type { End, Job, Work } from "../backups/backup-job.ts";
import type { Platform } from "../platform.ts";
import { readLog } from "./stored-log.ts";
import { storeLog } from "./store-log.ts";

interface MomentWork extends Work {
  readonly row: DatabaseRow;
  readonly spec: DatabaseSpec;
  readonly history: DatabaseHistory;
  readonly at: Date;
  readonly name: string;
}

/**
 * Restores a database to a moment: recovers a copy of its instance beside the running one, and copies what was the live database then into
 * a new one.
 */
export async function momentJob(given: Work, restoreTo: string): Promise<Job> {
  const { platform, operation } = given;
  const row = await databaseOf(platform.db, operation.org_id, operation.project_id);
  if (row === undefined) throw new Error("the operation's project has no database");
  const history = platform.ports.postgresHost.history(row.id);
  if (history === null) throw new Error("the database has no archive");
  const spec = specOf(platform.vault, row);
  const work = { ...given, row, spec, history, at: new Date(restoreTo), name: operation.database_name as string };
  return { perform: () => restore(work), cleanUp: () => cleanUp(work) };
}

async function restore(work: MomentWork): Promise<End> {
  const { platform, operation, spec, history, at, name, progress, signal } = work;
  await progress.enter("checking");
  const found = await find(work);
  if (found === undefined) return { problem: await outside(work) };
  const storage = platform.ports.storages.named[found.chain.storage];
  if (storage === undefined)
    throw new DatabaseWorkFailed("missing", `It is in the storage "${found.chain.storage}", which is not configured.`);
  await requireRoomToRecover(work, found);
  const { base, chain } = found;
  const recovered = await history.recover(spec, {
    archive: await openChecked(fileOf(work, storage, base)),
    ...{ backup_label: base.backup_label ?? "", segment_bytes: chain.segment_bytes },
    ...{ segments: readLog(storage, { ...found, start: base.start_position ?? 0 }, signal), until: at, signal },
  });
  await progress.enter("restoring");
  const live = await liveNameAt(platform.db, operation, at, spec.database_name);
  if (!(await recovered.listDatabases()).includes(live))
    throw new DatabaseWorkFailed("refused", `The database ${live} did not exist at that moment.`);
  const { postgresHost } = platform.ports;
  await postgresHost.createDatabase(spec, name);
  const { counts } = await recovered.dump(live, {
    signal,
    isCompressed: false,
    onCounted: ({ counted, tables }) => progress.tell({ tables_done: counted, tables_total: tables }),
    consume: (archive) => postgresHost.restore(spec, name, { archive, signal }),
  });
  await progress.enter("counting");
  requireSame(counts, await postgresHost.countRows(spec, name, { signal }));
  await history.discardRecovered(spec.id);
  const { org_id, project_id } = operation;
  const row = { org_id, project_id, name, backup_id: null, shows: at.toISOString() };
  return { problem: null, write: (tx) => insertRestored(tx, row) };
}

/** Throws `StorageFull` when the data folder has no room for the copy, its log and the new database. */
async function requireRoomToRecover({ platform, spec }: MomentWork, { base, end }: Found): Promise<void> {
  const seen = await platform.ports.postgresHost.observe(spec);
  const bytes = 2 * (seen.state === "running" ? seen.size_bytes : 0) + end - (base.start_position ?? 0);
  const { available_bytes } = await platform.ports.dataDisk.observe();
  if (available_bytes < bytes) throw new StorageFull();
}

type Found = Recovery<ArchiveChain, ArchiveCopy>;

async function find({ platform, operation, row, history, at }: MomentWork) {
  const chains = await chainsOf(platform.db, operation);
  const newest = chains.at(-1);
  // The last seconds are still on their way, unless the database is away.
  if (!newest?.stored_until || Date.parse(newest.stored_until) < at.getTime())
    await storeLog(platform, row, history).catch((error: unknown) =>
      platform.log.warn({ error: (error as Error).message }, "the newest log could not be stored before a restore"),
    );
  const stored = await chainsOf(platform.db, operation);
  return recoveryOf(stored, await copiesOfAll(platform, stored), at);
}

const copiesOfAll = ({ db }: Platform, chains: readonly ArchiveChain[]) =>
  copiesOf(
    db,
    chains.map(({ id }) => id),
  );

async function outside({ platform, operation }: MomentWork) {
  const chains = await chainsOf(platform.db, operation);
  return {
    code: "target_outside_window" as const,
    summary: outsideText(windowsOf(chains, await copiesOfAll(platform, chains))),
  };
}

function fileOf({ progress, signal }: MomentWork, storage: Storage, { storage_key: key, sha256 }: ArchiveCopy) {
  const onBytes = (bytes_done: number) => progress.tell({ bytes_done });
  return { storage, key, sha256: sha256 ?? "", signal, onBytes };
}

function requireSame(expected: readonly TableCount[], actual: readonly TableCount[]): void {
  const rows = new Map(actual.map((each) => [each.table, each.rows]));
  const differing = expected.filter((each) => rows.get(each.table) !== each.rows);
  if (differing.length > 0)
    throw new DatabaseWorkFailed(
      "refused",
      `${differing.length} of ${expected.length} tables differ after the restore.`,
    );
}

async function cleanUp({ platform, lease, spec, history, name }: MomentWork): Promise<void> {
  await requireLease(platform.db, lease);
  await history.discardRecovered(spec.id);
  await platform.ports.postgresHost.dropDatabase(spec, name);
}
