import { setTimeout as sleep } from "node:timers/promises";
import { findBackup, requestBackup, requestOperation } from "../../features/backups/backups.ts";
import { databaseOf } from "../../features/database/database.ts";
import { updatePurge, type TakenPurge } from "../../features/purges/purges.ts";
import type { Lease } from "../../store/leases.ts";
import type { Platform } from "../platform.ts";

/** The verified final backup, null if there is no database; or why there is none. */
export type FinalBackup =
  | { readonly outcome: "secured"; readonly id: string | null }
  | { readonly outcome: "failed"; readonly problem: string };

const pauseMs = 500;

/** Creates the final backup of a project's database and verifies it, through the same operations as any backup. */
export async function secureFinalBackup(
  platform: Platform,
  purge: TakenPurge,
  lease: Lease,
  signal: AbortSignal,
): Promise<FinalBackup> {
  const database = await databaseOf(platform.db, purge.org_id, purge.project_id);
  // An earlier attempt may have released the database already; one that was never ready holds no data.
  if (!database?.engine_version) return { outcome: "secured", id: purge.backup_id };
  const id = purge.backup_id ?? (await startBackup(platform, purge, lease, signal));
  let verification: string | undefined;
  for (;;) {
    const backup = await findBackup(platform.db, purge, id);
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
      const asked = await requestBackup(tx, platform.wakeups, { org_id, project_id, origin: "final" });
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
