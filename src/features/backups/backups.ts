import { randomBytes } from "node:crypto";
import { newId } from "../../kit/ids.ts";
import type { Db, Tx } from "../../store/database.ts";
import type { Wakeups } from "../../store/wakeups.ts";
import type { Reach } from "../../store/within.ts";
import type { ProjectKey } from "../projects/projects.ts";
import { isPurged } from "../purges/purges.ts";
import { insertDrill } from "./drills.ts";
import { insertOperation, type NewOperation } from "./operations.ts";
import { insertBackup, lockDaily, removeBackup, selectBackup, type NewBackup } from "./queries.ts";

export {
  selectBackup as findBackup,
  completedBackups,
  dailyStates,
  deleteExpired,
  endedBackups,
  finalBackups,
  expireBackup,
  expiredRows,
  newestSize,
  newestVerifiedAt,
  storedBackup,
  type CompletedBackup,
  type StoredBackup,
} from "./queries.ts";
export * from "./pieces.ts";
export { listText, readPieces, type ListedPiece } from "./read-pieces.ts";
export { FileIndex } from "./file-index.ts";
export { openSnapshot, SnapshotClosed, type Snapshot } from "./snapshots.ts";
export * from "./archive-queries.ts";
export * from "./archive-rules.ts";
export { ownServer, readSpans, restorableAt } from "./archive.ts";
export { deleteOldDrills, drillStates, endDrill, failDrill, troubledDrills, type Evidence } from "./drills.ts";
export { ArchiveDamaged } from "../../ports/storage.ts";
export {
  checkArchive,
  firstReadable,
  openChecked,
  packArchive,
  unpackArchive,
  type ArchiveFile,
} from "./backup-archive.ts";
export * from "./restored.ts";
export * from "./rules.ts";
export * from "./operations.ts";

/** Name prefix of scratch databases. Such a database may be dropped when no operation uses it. */
export const scratchPrefix = "verify_";

/** The requested backup, or `busy`: something of the project is already being backed up, restored or verified. */
export type Requested =
  | { readonly outcome: "requested"; readonly id: string; readonly operation_id: string }
  | { readonly outcome: "busy" };

/** Requests a backup of the project's database, which must exist, or of its files. */
export async function requestBackup(tx: Tx, wakeups: Wakeups, wanted: Omit<NewBackup, "id">): Promise<Requested> {
  const id = newId("bak");
  await insertBackup(tx, { ...wanted, id });
  const { org_id, project_id } = wanted;
  const asked = await requestOperation(tx, wakeups, { org_id, project_id, backup_id: id, kind: "backup" });
  if (asked === undefined) {
    await removeBackup(tx, org_id, id);
    return { outcome: "busy" };
  }
  return { outcome: "requested", id, operation_id: asked.id };
}

/** Requests the day's automatic backup, unless one was started after `since`. */
export async function requestDailyBackup(
  tx: Tx,
  wakeups: Wakeups,
  wanted: ProjectKey & Pick<NewBackup, "content"> & { readonly since: string | null; readonly now: Date },
): Promise<Requested> {
  const { org_id, project_id, content, since, now } = wanted;
  if ((await lockDaily(tx, { org_id, project_id, content }, now)) !== since) return { outcome: "busy" };
  return requestBackup(tx, wakeups, { org_id, project_id, content, origin: "daily" });
}

/** Requests an operation on a backup; returns undefined when the project is busy. */
export async function requestOperation(
  tx: Tx,
  wakeups: Wakeups,
  wanted: Omit<NewOperation, "id" | "database_name">,
): Promise<{ readonly id: string } | undefined> {
  const id = newId("bop");
  const operation = { ...wanted, id, database_name: freshName(wanted.kind) };
  if (!(await insertOperation(tx, operation))) return undefined;
  // A deleted project's database runs only while an operation needs it, so it has to be started.
  await wakeups.send(tx, "databases", wanted.project_id);
  await wakeups.send(tx, "backups", wanted.project_id);
  return { id };
}

/** Requests a trial restore from a project's archive; returns undefined when another operation is under way. */
export async function requestDrill(
  tx: Tx,
  wakeups: Wakeups,
  { org_id, project_id, origin }: ProjectKey & { readonly origin: "manual" | "daily" },
): Promise<{ readonly id: string } | undefined> {
  const restore_to = new Date().toISOString();
  const wanted = { org_id, project_id, backup_id: null, kind: "verify", restore_to } as const;
  const asked = await requestOperation(tx, wakeups, wanted);
  if (asked !== undefined) await insertDrill(tx, { org_id, project_id, origin, id: asked.id });
  return asked;
}

/** Returns the project's own backup with this id, or the final backup of a purged project of the same organization; undefined for any other. */
export async function restorableBackup(tx: Db | Tx, key: ProjectKey, reach: Pick<Reach, "project_ids">, id: string) {
  const { org_id, project_id } = key;
  const backup = await selectBackup(tx, org_id, id);
  if (backup === undefined || backup.project_id === project_id) return backup;
  // A token limited to projects reaches nothing of others, not even of purged ones.
  if (reach.project_ids !== null) return undefined;
  return (await isPurged(tx, { org_id, project_id: backup.project_id })) ? backup : undefined;
}

/** Returns a new name for an additional database or a folder below `.restored`, such as `restored_20260101_0123456789`. */
export function furtherName(word: "restored" | "imported" | "uploaded"): string {
  return `${word}_${new Date().toISOString().slice(0, 10).replaceAll("-", "")}_${randomBytes(5).toString("hex")}`;
}

function freshName(kind: NewOperation["kind"]): string | null {
  if (kind === "verify") return `${scratchPrefix}${randomBytes(5).toString("hex")}`;
  return kind === "restore" ? furtherName("restored") : null;
}
