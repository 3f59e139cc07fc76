import { setTimeout as sleep } from "node:timers/promises";
import { removeEndedPreviews } from "../../features/previews/previews.ts";
import {
  releasePurge,
  requestDuePurges,
  takePurge,
  type TakenPurge,
  deleteDatabaseRow,
  deleteProjectRows,
  endPurge,
  expireOtherBackups,
  historyOf,
  isBusy,
  updatePurge,
} from "../../features/purges/purges.ts";
import { provenTime } from "../../store/proven-time.ts";
import type { Task, Platform } from "../platform.ts";
import { createLeasedTask } from "../leased-work.ts";
import { recordEvent } from "../../features/activity/activity.ts";
import { findBackup, requestBackup, requestOperation } from "../../features/backups/backups.ts";
import { databaseOf } from "../../features/database/database.ts";
import { lockProject } from "../../features/projects/projects.ts";
import { runIds } from "../../features/runs/runs.ts";
import { requireLease, type Lease } from "../../store/leases.ts";
import { deleteExpiredBackups } from "../backups/backup-upkeep.ts";

const retrySeconds = 5;

/** Purges projects on request, those that were deleted long enough ago, and previews that have ended. */
export function purgesTask(platform: Platform, wake: () => void): Task {
  const { db, owner } = platform;
  let failed = false;
  return createLeasedTask<TakenPurge>(platform, wake, {
    name: "purges",
    periodMs: 60_000,
    topics: ["purges"],
    table: "project_purge",
    ...{ limit: 2, perOrganization: 1 },
    take: (inProgress) => takePurge(db, owner, inProgress),
    work: (purge, lease, signal) => performPurge(platform, purge, lease, signal),
    // Every step is idempotent, so the next attempt continues where this one failed.
    broken: async (_, lease, stopping) => {
      failed = true;
      await releasePurge(db, lease, stopping ? 0 : retrySeconds);
    },
    async before() {
      await removeEndedPreviews(db, platform.wakeups);
      const days = platform.settings.purgeDays;
      if (days > 0) await requestDuePurges(db, platform.wakeups, { now: await provenTime(platform), days });
    },
    async after() {
      const againMs = failed ? (retrySeconds + 1) * 1000 : undefined;
      failed = false;
      return { againMs };
    },
  });
}

const pauseMs = 500;

/**
 * Purges one project: creates and verifies a final backup, deletes everything outside Berth's database, then the rows. Every step is
 * idempotent, so after a crash the next attempt continues. Without a verified backup nothing is deleted, and the purge fails. A preview goes
 * without one.
 */
async function performPurge(platform: Platform, purge: TakenPurge, lease: Lease, signal: AbortSignal): Promise<void> {
  while (await isBusy(platform.db, purge)) await sleep(pauseMs, undefined, { signal });
  const backup = await secureFinalBackup(platform, purge, lease, signal);
  if (backup.outcome === "failed") return end(platform, purge, lease, { problem: backup.problem });
  const databaseId = await releaseDatabase(platform, purge, lease, signal);
  await requireLease(platform.db, lease);
  await deleteFiles(platform, purge, databaseId);
  await platform.db.transaction().execute((tx) => expireOtherBackups(tx, purge, backup.id));
  await deleteExpiredBackups(platform, signal);
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

/** The verified final backup, null if there is no database; or why there is none. */
type FinalBackup =
  | { readonly outcome: "secured"; readonly id: string | null }
  | { readonly outcome: "failed"; readonly problem: string };

/** Creates the final backup of a project's database and verifies it, through the same operations as any backup. */
async function secureFinalBackup(
  platform: Platform,
  purge: TakenPurge,
  lease: Lease,
  signal: AbortSignal,
): Promise<FinalBackup> {
  const database = await databaseOf(platform.db, purge.org_id, purge.project_id);
  if (purge.preview_of !== null) return { outcome: "secured", id: null };
  // An earlier attempt may have released the database already; one that was never ready holds no data.
  if (!database?.engine_version) return { outcome: "secured", id: purge.backup_id };
  const id = purge.backup_id ?? (await startBackup(platform, purge, lease, signal));
  let verification: string | undefined;
  for (;;) {
    const backup = await findBackup(platform.db, purge.org_id, id);
    if (backup?.status === "failed" || backup === undefined) return failed(backup?.problem);
    if (backup.verification === "verified") return { outcome: "secured", id };
    if (backup.verification !== null) return failed(backup.verification_problem ?? backup.verification);
    if (backup.status === "completed" && backup.kind === null) {
      if (verification !== undefined) return failed("its verification did not finish");
      verification = await startVerification(platform, purge, id);
    }
    await sleep(pauseMs, undefined, { signal });
  }
}

function failed(reason: string | null | undefined): FinalBackup {
  return {
    outcome: "failed",
    problem: `Berth could not create and verify the final backup, so nothing was deleted: ${reason ?? "it is missing"}`,
  };
}

/** Starts the final backup, once no backup, restore or verification of the database is in progress. */
async function startBackup(platform: Platform, purge: TakenPurge, lease: Lease, signal: AbortSignal): Promise<string> {
  const { org_id, project_id } = purge;
  for (;;) {
    const id = await platform.db.transaction().execute(async (tx) => {
      const asked = await requestBackup(tx, platform.wakeups, {
        org_id,
        project_id,
        content: "database",
        origin: "final",
      });
      if (asked.outcome === "busy") return undefined;
      await updatePurge(tx, lease, { backup_id: asked.id });
      return asked.id;
    });
    if (id !== undefined) return id;
    await sleep(pauseMs, undefined, { signal });
  }
}

async function startVerification(
  platform: Platform,
  purge: TakenPurge,
  backup_id: string,
): Promise<string | undefined> {
  const { org_id, project_id } = purge;
  const asked = await platform.db
    .transaction()
    .execute((tx) => requestOperation(tx, platform.wakeups, { org_id, project_id, backup_id, kind: "verify" }));
  return asked?.id;
}
