import { setTimeout as sleep } from "node:timers/promises";
import { recordEvent } from "../../features/activity/activity.ts";
import { databaseOf } from "../../features/database/database.ts";
import { lockProject } from "../../features/projects/projects.ts";
import {
  deleteDatabaseRow,
  deleteProjectRows,
  endPurge,
  expireOtherBackups,
  historyOf,
  isBusy,
  updatePurge,
  type TakenPurge,
} from "../../features/purges/purges.ts";
import { requireLease, type Lease } from "../../store/leases.ts";
import { deleteExpiredBackups } from "../backups/backup-upkeep.ts";
import { runIds } from "../../features/runs/runs.ts";
import type { Platform } from "../platform.ts";
import { secureFinalBackup } from "./final-backup.ts";

const pauseMs = 500;

/**
 * Purges one project: creates and verifies a final backup, deletes everything outside Berth's database, then the rows. Every step is
 * idempotent, so after a crash the next attempt continues. Without a verified backup nothing is deleted, and the purge fails.
 */
export async function performPurge(
  platform: Platform,
  purge: TakenPurge,
  lease: Lease,
  signal: AbortSignal,
): Promise<void> {
  while (await isBusy(platform.db, purge)) await sleep(pauseMs, undefined, { signal });
  const backup = await secureFinalBackup(platform, purge, lease, signal);
  if (backup.outcome === "failed") return end(platform, purge, lease, { problem: backup.problem });
  const databaseId = await releaseDatabase(platform, purge, lease, signal);
  await requireLease(platform.db, lease);
  await deleteFiles(platform, purge, databaseId);
  await platform.db.transaction().execute((tx) => expireOtherBackups(tx, purge, backup.id));
  await deleteExpiredBackups(platform);
  await end(platform, purge, lease, { final_backup_id: backup.id });
}

/** Deletes the database's row, so that no task starts its server again, and returns its id. */
async function releaseDatabase(
  platform: Platform,
  purge: TakenPurge,
  lease: Lease,
  signal: AbortSignal,
): Promise<string | null> {
  const row = await databaseOf(platform.db, purge.org_id, purge.project_id);
  if (row === undefined) return purge.database_id;
  const deleteRow = () =>
    platform.db.transaction().execute(async (tx) => {
      if (!(await deleteDatabaseRow(tx, purge))) throw new DatabaseBusy();
      await updatePurge(tx, lease, { database_id: row.id });
    });
  for (;;) {
    try {
      await deleteRow();
      return row.id;
    } catch (error) {
      if (!(error instanceof DatabaseBusy)) throw error;
      await sleep(pauseMs, undefined, { signal });
    }
  }
}

/** Thrown while a task is starting or changing the database. */
class DatabaseBusy extends Error {}

async function deleteFiles({ db, ports }: Platform, purge: TakenPurge, databaseId: string | null): Promise<void> {
  const { project_id, project_number } = purge;
  const { deployments, builds } = await historyOf(db, purge);
  const own = (await ports.runtime.observe()).filter((instance) => instance.project_id === project_id);
  for (const id of new Set([...deployments, ...own.map(({ workload_id }) => workload_id)]))
    await ports.runtime.remove(id);
  for (const image_ref of await ports.builder.images(project_id))
    await ports.runtime.removeImage({ project_id, image_ref });
  await ports.runtime.removeStorage({ project_id, project_number });
  await ports.builder.clearCaches(project_id);
  await ports.repositories.remove(project_id);
  await ports.logStore.remove(project_id, [...builds, ...(await runIds(db, project_id))]);
  if (databaseId !== null) await ports.postgresHost.destroy(databaseId);
}

type End = { readonly problem: string } | { readonly final_backup_id: string | null };

async function end({ db, wakeups }: Platform, purge: TakenPurge, lease: Lease, detail: End): Promise<void> {
  const { org_id, project_id, slug: target } = purge;
  const problem = "problem" in detail ? detail.problem : null;
  const action = problem === null ? "project.purged" : "project.purge_failed";
  await db.transaction().execute(async (tx) => {
    // The project first, as a request for the purge locks it.
    await lockProject(tx, purge);
    if (!(await endPurge(tx, lease, problem))) throw new Error("the lease of the purge was lost");
    if (problem === null) await deleteProjectRows(tx, purge);
    await recordEvent(tx, { org_id, project_id, action, target, detail });
    await wakeups.send(tx, "edge", project_id);
    await wakeups.send(tx, "outcomes", purge.id);
  });
}
