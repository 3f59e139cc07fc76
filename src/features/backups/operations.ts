import { sql } from "kysely";
import type { TableCount } from "../../ports/postgres-host.ts";
import type { Columns, Db, Tx } from "../../store/database.ts";
import { isPieceBeingStored } from "./pieces.ts";
import { claimRow, holds, type InProgress, type Lease } from "../../store/leases.ts";

export interface NewOperation extends Columns<
  "backup_operation",
  "id" | "org_id" | "project_id" | "backup_id" | "kind" | "database_name"
> {
  /** The moment to restore, instead of a backup. */
  readonly restore_to?: string | null;
  /** What to put into the live files: the backup's, or the one in this folder below `.restored`. */
  readonly path?: string | null;
  readonly folder?: string | null;
  readonly replaces?: boolean;
}

/** Inserts the operation; returns false when the project already has a running one. */
export async function insertOperation(tx: Tx, operation: NewOperation): Promise<boolean> {
  // A literal, because PostgreSQL matches the partial index by the statement's text, not by a parameter's value.
  const running = sql.lit<"running">("running");
  const done = await tx
    .insertInto("backup_operation")
    .values(operation)
    .onConflict((on) => on.column("project_id").where("status", "=", running).doNothing())
    .executeTakeFirst();
  return done.numInsertedOrUpdatedRows === 1n;
}

/** Returns whether the project's database is being backed up, restored or verified. */
export async function hasRunning(db: Db | Tx, orgId: string, projectId: string): Promise<boolean> {
  const row = await db
    .selectFrom("backup_operation")
    .select("id")
    .where(({ and }) => and({ org_id: orgId, project_id: projectId, status: "running" }))
    .executeTakeFirst();
  return row !== undefined;
}

export async function operationOf(db: Db | Tx, orgId: string, id: string) {
  return db
    .selectFrom("backup_operation")
    .select(["status", "phase", "database_name", "problem_code", "problem"])
    .where(({ and }) => and({ org_id: orgId, id }))
    .executeTakeFirst();
}

export interface TakenOperation
  extends
    Omit<NewOperation, "backup_id" | "restore_to" | "path" | "folder" | "replaces">,
    Columns<"backup_operation", "fence" | "attempts" | "restore_to" | "path" | "folder" | "replaces">,
    Columns<"backup", "content" | "storage" | "storage_key" | "sha256" | "size_bytes"> {
  readonly row_counts: readonly TableCount[] | null;
  /** Empty for a restore to a moment or of a path from a folder, which have no backup. */
  readonly backup_id: string;
}

/** Claims the oldest operation that has no worker, or whose worker is gone. */
export function takeOperation(db: Db, owner: string, inProgress: InProgress): Promise<TakenOperation | undefined> {
  return claimRow<TakenOperation>(db, {
    ...{ table: "backup_operation", owner, inProgress, order: "created_at" },
    due: sql`q.status = 'running'`,
    set: sql`, attempts = q.attempts + 1, phase = 'waiting', bytes_done = 0, tables_done = 0, tables_total = null`,
    from: sql`left join backup b on b.id = q.backup_id`,
    returning: sql`t.id, t.org_id, t.project_id, coalesce(t.backup_id, '') as backup_id, t.kind, t.database_name,
      t.restore_to, t.path, t.folder, t.replaces, t.fence, t.attempts, coalesce(b.content, 'database') as content, b.storage, b.storage_key, b.sha256, b.size_bytes, b.row_counts`,
  });
}

export type Progress = Columns<"backup_operation", "phase" | "bytes_done" | "tables_done" | "tables_total">;

export async function setProgress(db: Db, lease: Lease, progress: Progress): Promise<void> {
  await db.updateTable("backup_operation").set(progress).where(holds(lease)).execute();
}

/** Releases an operation, which any worker can claim after the pause. `uncounted`: the operation was not at fault. */
export async function releaseOperation(
  db: Db,
  lease: Lease,
  options: { pauseSeconds: number; uncounted: boolean },
): Promise<void> {
  await db
    .updateTable("backup_operation")
    .set({
      lease_owner: null,
      lease_until: sql`now() + make_interval(secs => ${options.pauseSeconds})`,
      attempts: options.uncounted ? sql`attempts - 1` : sql`attempts`,
    })
    .where(holds(lease))
    .where("status", "=", "running")
    .execute();
}

/** Why an operation failed: a stable code and a sentence for the project's owner. */
export interface Problem {
  readonly code:
    | "storage_full"
    | "backup_damaged"
    | "wal_missing"
    | "target_outside_window"
    | "unavailable"
    | "refused"
    | "platform_fault";
  readonly summary: string;
}

/** Ends an operation if the lease still holds; returns false when it doesn't. */
export async function endOperation(tx: Tx, lease: Lease, problem: Problem | null): Promise<boolean> {
  const done = await tx
    .updateTable("backup_operation")
    .set({
      status: problem === null ? "completed" : "failed",
      problem_code: problem?.code ?? null,
      problem: problem?.summary ?? null,
      finished_at: sql`now()`,
      lease_owner: null,
      lease_until: null,
    })
    .where(holds(lease))
    .where("status", "=", "running")
    .executeTakeFirst();
  return done.numUpdatedRows === 1n;
}

/** Records where a backup's file will be stored, before its first byte is written. Returns false when the lease was lost. */
export async function setStorageKey(
  db: Db,
  lease: Lease,
  place: { backup_id: string; storage: string; storage_key: string },
): Promise<boolean> {
  const { backup_id, storage, storage_key } = place;
  const done = await sql`update backup b set storage = ${storage}, storage_key = ${storage_key} from backup_operation o
    where b.id = ${backup_id} and o.id = ${lease.id} and o.fence = ${lease.fence} and o.status = 'running'`.execute(db);
  return done.numAffectedRows === 1n;
}

/** Returns whether a partly written file belongs to a running operation. */
export async function isBeingStored(db: Db, storage: string, key: string): Promise<boolean> {
  const row = await db
    .selectFrom("backup")
    .innerJoin("backup_operation", "backup_operation.backup_id", "backup.id")
    .select("backup.id")
    .where("backup.storage", "=", storage)
    .where("backup.storage_key", "=", key)
    .where("backup_operation.status", "=", "running")
    .where("backup_operation.kind", "=", "backup")
    .executeTakeFirst();
  return row !== undefined || (await isPieceBeingStored(db, storage, key));
}

/** Returns the names of databases that running operations have created or will create. */
export async function namesInUse(db: Db, orgId: string, projectId: string): Promise<ReadonlySet<string>> {
  const rows = await db
    .selectFrom("backup_operation")
    .select("database_name")
    .where(({ and }) => and({ org_id: orgId, project_id: projectId, status: "running" }))
    .execute();
  return new Set(rows.map((row) => row.database_name ?? ""));
}

export interface Completion {
  readonly size_bytes: number;
  readonly sha256: string;
  /** Null for a backup of files, as is the version. */
  readonly row_counts: readonly TableCount[] | null;
  readonly engine_version: string | null;
  /** The list of the pieces that hold the index of a backup of files. */
  readonly file_index?: string | null;
}

export async function completeBackup(tx: Tx, operation: TakenOperation, made: Completion): Promise<void> {
  await tx
    .updateTable("backup")
    .set({
      ...made,
      row_counts: made.row_counts && JSON.stringify(made.row_counts),
      status: "completed",
      finished_at: sql`now()`,
    })
    .where(({ and }) => and({ org_id: operation.org_id, id: operation.backup_id, status: "running" }))
    .execute();
}

export async function failBackup(tx: Tx, operation: TakenOperation, problem: Problem): Promise<void> {
  await tx
    .updateTable("backup")
    .set({ status: "failed", problem_code: problem.code, problem: problem.summary, finished_at: sql`now()` })
    .where(({ and }) => and({ org_id: operation.org_id, id: operation.backup_id, status: "running" }))
    .execute();
}

export interface Verdict {
  readonly verification: "verified" | "mismatch" | "failed";
  readonly comparison: readonly { readonly table: string; readonly expected: number; readonly actual: number | null }[];
  readonly verification_problem: string | null;
}

export async function recordVerdict(tx: Tx, operation: TakenOperation, verdict: Verdict): Promise<void> {
  await tx
    .updateTable("backup")
    .set({ ...verdict, comparison: JSON.stringify(verdict.comparison), verified_at: sql`now()` })
    .where(({ and }) => and({ org_id: operation.org_id, id: operation.backup_id }))
    .execute();
}
