import { randomBytes } from "node:crypto";
import { newId } from "../../kit/ids.ts";
import type { Db, Tx } from "../../store/database.ts";
import type { Wakeups } from "../../store/wakeups.ts";
import { isPurged } from "../purges/purges.ts";
import { insertOperation, type NewOperation } from "./operations.ts";
import { insertBackup, lockDaily, removeBackup, selectBackup, type NewBackup } from "./queries.ts";

export {
  dailyStates,
  deleteExpired,
  endedBackups,
  expireBackup,
  expiredRows,
  newestSize,
  newestVerifiedAt,
  storedBackup,
} from "./queries.ts";
export { ArchiveDamaged, checkArchive, packArchive, unpackArchive, type ArchiveFile } from "./backup-archive.ts";
export { droppedDatabases, forgetRestored, insertRestored, restoredDatabases } from "./restored.ts";
export { expired, isDue, type BackupWindow, type Retention } from "./rules.ts";
export {
  completeBackup,
  endOperation,
  failBackup,
  isBeingStored,
  namesInUse,
  recordVerdict,
  releaseOperation,
  setProgress,
  setStorageKey,
  takeOperation,
  type Problem,
  type Progress,
  type TakenOperation,
  type Verdict,
} from "./operations.ts";

/** How the names of scratch databases begin. Whatever is called so and is not worked with may be dropped. */
export const scratchPrefix = "verify_";

interface Owner {
  readonly org_id: string;
  readonly project_id: string;
}

/** A backup that was asked for, or `busy`: the project's database is being backed up, restored or verified. */
export type Requested =
  | { readonly outcome: "requested"; readonly id: string; readonly operation_id: string }
  | { readonly outcome: "busy" };

/** Asks for a backup of the project's database, which must exist. */
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

/** Asks for the day's automatic backup, unless one was begun after `since`. */
export async function requestDailyBackup(
  tx: Tx,
  wakeups: Wakeups,
  wanted: Owner & { readonly since: string | null; readonly now: Date },
): Promise<Requested> {
  const { org_id, project_id, since, now } = wanted;
  if ((await lockDaily(tx, { org_id, project_id }, now)) !== since) return { outcome: "busy" };
  return requestBackup(tx, wakeups, { org_id, project_id, origin: "daily" });
}

/** Asks for a restore or a verification; undefined when the project is busy. */
export async function requestOperation(
  tx: Tx,
  wakeups: Wakeups,
  wanted: Omit<NewOperation, "id" | "database_name">,
): Promise<{ readonly id: string } | undefined> {
  const id = newId("bop");
  const operation = { ...wanted, id, database_name: freshName(wanted.kind) };
  if (!(await insertOperation(tx, operation))) return undefined;
  // The database of a deleted project runs for this operation only.
  await wakeups.send(tx, "databases", wanted.project_id);
  await wakeups.send(tx, "backups", wanted.project_id);
  return { id };
}

/** The caller's backup of this id. One of another organization is as missing as one that never was. */
export async function findBackup(db: Db | Tx, caller: { readonly org_id: string }, id: string) {
  return selectBackup(db, caller.org_id, id);
}

/** The project's own backup of this id, or the final one of a purged project of the organization; undefined for every other. */
export async function restorableBackup(tx: Tx, { org_id, project_id }: Owner, id: string) {
  const backup = await selectBackup(tx, org_id, id);
  if (backup === undefined || backup.project_id === project_id) return backup;
  return (await isPurged(tx, { org_id, project_id: backup.project_id })) ? backup : undefined;
}

/** The name of a further database, such as `restored_20260101_0123456789`. */
export function furtherName(word: "restored" | "imported"): string {
  return `${word}_${new Date().toISOString().slice(0, 10).replaceAll("-", "")}_${randomBytes(5).toString("hex")}`;
}

function freshName(kind: NewOperation["kind"]): string | null {
  if (kind === "verify") return `${scratchPrefix}${randomBytes(5).toString("hex")}`;
  return kind === "restore" ? furtherName("restored") : null;
}
