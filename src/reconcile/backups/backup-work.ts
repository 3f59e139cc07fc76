import { recordEvent } from "../../features/activity/activity.ts";
import * as backups from "../../features/backups/backups.ts";
import { databaseOf, specOf } from "../../features/database/database.ts";
import { FilesRefused } from "../../kit/folder-tar.ts";
import { until } from "../../kit/until.ts";
import { DatabaseWorkFailed, type DatabaseSpec, type TableCount } from "../../ports/postgres-host.ts";
import { StorageFull, type Storage } from "../../ports/storage.ts";
import type { Db } from "../../store/database.ts";
import { requireLease, type Lease } from "../../store/leases.ts";
import type { Platform } from "../platform.ts";
import { momentJob } from "../archives/moment-job.ts";
import { LogDamaged } from "../archives/stored-log.ts";
import { archiveOf, requireRoom, type BackupProgress, type End, type Job, type Work } from "./backup-job.ts";
import { filesJob } from "./files-job.ts";
import { pathJob } from "./path-job.ts";

interface DatabaseWork extends Work {
  readonly spec: DatabaseSpec;
}

const mostAttempts = 3;

/** Creates, restores or verifies a backup, and ends the operation for every outcome that is its own. Throws on platform faults. */
export async function performBackupWork(
  platform: Platform,
  operation: backups.TakenOperation,
  lease: Lease,
  signal: AbortSignal,
): Promise<void> {
  const progress = createBackupProgress(platform.db, lease);
  const work = { platform, operation, lease, signal, progress };
  try {
    const job = await jobOf(work);
    await end(work, job, await attempt(work, job));
  } finally {
    await progress.close();
  }
}

function jobOf(work: Work): Promise<Job> {
  const { content, restore_to, path } = work.operation;
  if (path !== null) return pathJob(work, path);
  if (restore_to !== null) return momentJob(work, restore_to);
  return content === "files" ? filesJob(work) : databaseJob(work);
}

async function databaseJob(given: Work): Promise<Job> {
  const { platform, operation } = given;
  const row = await databaseOf(platform.db, operation.org_id, operation.project_id);
  if (row === undefined) throw new Error("the operation's project has no database");
  const work = { ...given, spec: specOf(platform.vault, row) };
  if (row.project_deleted_at !== null || row.is_asleep) await awaitDatabase(work);
  return { perform: () => perform(work), cleanUp: () => cleanUp(work) };
}

// PostgreSQL starts in less than a second and recovers in seconds. If it does not come up, the operation itself reports why.
const startMs = 60_000;

/** Waits for the database of a deleted project, or of a preview that sleeps: it is stopped until an operation needs it. */
async function awaitDatabase({ platform, spec, signal }: DatabaseWork): Promise<void> {
  const runs = async () => ((await platform.ports.postgresHost.observe(spec)).state === "running" ? true : undefined);
  await until(runs, { timeoutMs: startMs, firstMs: 100, atMostMs: 500, signal });
}

async function attempt(work: Work, job: Job): Promise<End> {
  const { attempts } = work.operation;
  try {
    // An earlier worker of this operation may have left a database or a file.
    await job.cleanUp();
  } catch (error) {
    if (attempts <= mostAttempts) throw error;
    work.platform.log.error(
      { err: error, operation: work.operation.id },
      "what an operation left could not be cleaned up",
    );
  }
  if (attempts > mostAttempts) return { problem: gaveUp };
  try {
    return await job.perform();
  } catch (error) {
    const problem = isOverdue(work.signal) ? tookTooLong : problemOf(error);
    if (problem !== tookTooLong) work.signal.throwIfAborted();
    if (problem === undefined) throw error;
    work.platform.log.warn({ err: error, operation: work.operation.id }, "a backup, restore or verification failed");
    await job.cleanUp();
    return { problem };
  }
}

const gaveUp: backups.Problem = {
  code: "platform_fault",
  summary: "The platform failed several times with an internal error while it worked on this.",
};
const tookTooLong: backups.Problem = { code: "unavailable", summary: "The work exceeded the platform's time limit." };

function isOverdue(signal: AbortSignal): boolean {
  return signal.aborted && (signal.reason as Error | undefined)?.name === "TimeoutError";
}

function perform(work: DatabaseWork): Promise<End> {
  switch (work.operation.kind) {
    case "backup":
      return backUp(work);
    case "restore":
      return restore(work);
    case "verify":
      return verify(work);
  }
}

async function backUp(work: DatabaseWork): Promise<End> {
  const { platform, operation, lease, spec, progress, signal } = work;
  const { standard, named } = platform.ports.storages;
  const storage = named[standard] as Storage;
  const { org_id, project_id, backup_id } = operation;
  await requireRoom(storage, await backups.newestSize(platform.db, org_id, project_id));
  // The name contains the lease's fence, so that a worker which has lost its lease never writes the same file as its successor.
  const key = `${org_id}/${project_id}/${backup_id}-${lease.fence}.dump.zst`;
  if (!(await backups.setStorageKey(platform.db, lease, { backup_id, storage: standard, storage_key: key })))
    throw new Error("the lease was lost");
  await progress.enter("dumping");
  let stored: { size_bytes: number; sha256: string } | undefined;
  const onBytes = (bytes_done: number) => progress.tell({ bytes_done });
  const { counts, engine_version } = await platform.ports.postgresHost.dump(spec, {
    signal,
    onCounted: ({ counted, tables }) => progress.tell({ tables_done: counted, tables_total: tables }),
    isCompressed: true,
    consume: async (archive) => void (stored = await backups.packArchive(archive, { storage, key, signal, onBytes })),
  });
  const made = { ...(stored as { size_bytes: number; sha256: string }), row_counts: counts, engine_version };
  return { problem: null, write: (tx) => backups.completeBackup(tx, operation, made) };
}

async function restore(work: DatabaseWork): Promise<End> {
  const { operation } = work;
  const name = operation.database_name as string;
  await restoreInto(work, name);
  const { org_id, project_id, backup_id } = operation;
  return { problem: null, write: (tx) => backups.insertRestored(tx, { org_id, project_id, name, backup_id }) };
}

async function verify(work: DatabaseWork): Promise<End> {
  const verdict = await verifyRestored(work);
  await work.progress.enter("cleaning");
  await cleanUp(work);
  return { problem: null, write: (tx) => backups.recordVerdict(tx, work.operation, verdict) };
}

async function verifyRestored(work: DatabaseWork): Promise<backups.Verdict> {
  const { platform, operation, spec, signal, progress } = work;
  const name = operation.database_name as string;
  try {
    await restoreInto(work, name);
    await progress.enter("counting");
    const onCounted = (done: { counted: number; tables: number }) =>
      progress.tell({ tables_done: done.counted, tables_total: done.tables });
    const actual = await platform.ports.postgresHost.countRows(spec, name, { signal, onCounted });
    return compare(operation.row_counts ?? [], actual);
  } catch (error) {
    // A defect in the backup is a verification result; a platform fault that prevented the check is not.
    const problem = signal.aborted ? undefined : problemOf(error);
    if (problem?.code !== "backup_damaged" && problem?.code !== "refused") throw error;
    return { verification: "failed", comparison: [], verification_problem: problem.summary };
  }
}

function compare(expected: readonly TableCount[], actual: readonly TableCount[]): backups.Verdict {
  const counted = new Map(actual.map(({ table, rows }) => [table, rows]));
  const comparison = expected.map(({ table, rows }) => ({ table, expected: rows, actual: counted.get(table) ?? null }));
  const differing = comparison.filter((each) => each.expected !== each.actual).length;
  if (differing === 0) return { verification: "verified", comparison, verification_problem: null };
  return {
    verification: "mismatch",
    comparison,
    verification_problem: `${differing} of ${comparison.length} tables differ.`,
  };
}

/** Checks the whole file first, then restores it into a new database of this name. */
async function restoreInto(work: DatabaseWork, name: string): Promise<void> {
  const { platform, spec, progress, signal } = work;
  const file = archiveOf(work);
  await progress.enter("checking");
  await backups.checkArchive(file);
  progress.tell({ bytes_done: 0 });
  await progress.enter("restoring");
  await platform.ports.postgresHost.createDatabase(spec, name);
  const archive = await backups.unpackArchive(file);
  await platform.ports.postgresHost.restore(spec, name, { archive, signal });
}

/** Drops the database that an unfinished operation created, or deletes its file. */
async function cleanUp({ platform, operation, lease, spec }: DatabaseWork): Promise<void> {
  // Without the lease, another worker has the operation and uses a database of the same name.
  await requireLease(platform.db, lease);
  if (operation.database_name !== null) await platform.ports.postgresHost.dropDatabase(spec, operation.database_name);
  if (operation.kind !== "backup") return;
  const { org_id, project_id, backup_id, storage, storage_key } = operation;
  if (storage !== null && storage_key !== null) await platform.ports.storages.named[storage]?.delete(storage_key);
  const { standard, named } = platform.ports.storages;
  await named[standard]?.delete(`${org_id}/${project_id}/${backup_id}-${lease.fence}.dump.zst`);
}

async function end(
  { platform, operation, lease }: Work,
  { atEnd }: Job,
  { problem, write, detail }: End,
): Promise<void> {
  const { org_id, project_id, backup_id, kind, restore_to, path, folder } = operation;
  await platform.db.transaction().execute(async (tx) => {
    if (!(await backups.endOperation(tx, lease, problem))) throw new Error("the lease of the operation was lost");
    if (problem !== null) await backups.failBackup(tx, operation, problem);
    await write?.(tx);
    await atEnd?.(tx);
    const verb = problem === null ? "completed" : "failed";
    const drilled = { backup: "backup", restore: "restore", verify: "drill" } as const;
    const noun = restore_to === null ? { ...drilled, verify: "verification" }[kind] : drilled[kind];
    await recordEvent(tx, {
      ...{ org_id, project_id, action: `${noun}.${verb}` },
      target: restore_to === null ? backup_id || folder : kind === "verify" ? operation.id : operation.database_name,
      detail: {
        ...(problem === null ? {} : { code: problem.code }),
        ...(restore_to === null ? {} : { restore_to }),
        ...(path === null ? {} : { path }),
        ...(folder === null ? {} : { folder }),
        ...detail,
      },
    });
    await platform.wakeups.send(tx, "outcomes", operation.id);
  });
}

/** Returns the problem in words for the project's owner; undefined for a platform fault. */
function problemOf(error: unknown): backups.Problem | undefined {
  if (error instanceof LogDamaged) return { code: "wal_missing", summary: error.message };
  if (error instanceof backups.ArchiveDamaged) return { code: "backup_damaged", summary: error.message };
  if (error instanceof backups.SnapshotClosed)
    return { code: error.isBusy ? "unavailable" : "refused", summary: error.message };
  if (error instanceof FilesRefused) return { code: "refused", summary: `The files in $STORAGE_DIR: ${error.message}` };
  if (error instanceof StorageFull) return { code: "storage_full", summary: "The platform's backup storage is full." };
  if (!(error instanceof DatabaseWorkFailed)) return undefined;
  switch (error.reason) {
    case "full":
      return { code: "storage_full", summary: error.message };
    case "refused":
      return { code: "refused", summary: error.message };
    case "away":
    case "missing":
      return { code: "unavailable", summary: error.message };
  }
}

const pauseMs = 500;

function createBackupProgress(db: Db, lease: Lease): BackupProgress {
  let now: backups.Progress = { phase: "waiting", bytes_done: 0, tables_done: 0, tables_total: null };
  let written = now;
  let writing: Promise<void> = Promise.resolve();
  // Progress is informational: a failed write must not fail the operation.
  const write = () => {
    if (written === now) return writing;
    const next = (written = now);
    writing = writing.then(() => backups.setProgress(db, lease, next)).catch(() => {});
    return writing;
  };
  const timer = setInterval(() => void write(), pauseMs);
  return {
    tell(change) {
      now = { ...now, ...change };
    },
    async enter(phase) {
      now = { ...now, phase };
      await write();
    },
    async close() {
      clearInterval(timer);
      await writing;
    },
  };
}
