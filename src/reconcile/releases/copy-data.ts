import { setTimeout as sleep } from "node:timers/promises";
import { findBackup, requestBackup } from "../../features/backups/backups.ts";
import { databaseOf } from "../../features/database/database.ts";
import { completeSnapshot, insertSnapshot, keptSnapshots } from "../../features/disk/disk.ts";
import { newId } from "../../kit/ids.ts";
import type { Failure } from "../../ports/failure.ts";
import { releaseFailure } from "./release-failures.ts";
import type { Release } from "./start-processes.ts";

const pollMs = 250;

/**
 * Completes a backup of the database and a copy of `$STORAGE_DIR`, because no human has seen what the release command does. Returns the
 * failure of the deployment when one of them can't be completed; the release command must not run then.
 */
export async function copyData(release: Release): Promise<Failure | undefined> {
  const { log, signal } = release;
  log.step("Copying the data before the release command, because a token in approval mode asked for this deploy");
  try {
    await backUp(release);
    await copyStorage(release);
    return undefined;
  } catch (error) {
    signal.throwIfAborted();
    release.platform.log.warn({ err: error, deployment: release.deployment.id }, "no copy before a release command");
    const reason = error instanceof NoBackup ? error.message : "the files of $STORAGE_DIR could not be copied";
    return releaseFailure("release", "copy_failed", `The release command did not run, because ${reason}.`);
  }
}

/** Its message is a clause for the pusher. */
class NoBackup extends Error {}

async function backUp({ platform, deployment, log, signal }: Release): Promise<void> {
  const { org_id, project_id } = deployment;
  const database = await databaseOf(platform.db, org_id, project_id);
  if (!database?.engine_version) return;
  const id = await requested(platform, { org_id, project_id }, signal);
  for (;;) {
    const backup = await findBackup(platform.db, deployment, id);
    if (backup?.status === "completed") return log.detail(`Backup of the database: ${id}`);
    if (backup?.status !== "running")
      throw new NoBackup(`the database could not be backed up: ${backup?.problem ?? "the backup is missing"}`);
    await sleep(pollMs, undefined, { signal });
  }
}

async function requested(
  { db, wakeups }: Release["platform"],
  project: { org_id: string; project_id: string },
  signal: AbortSignal,
): Promise<string> {
  for (;;) {
    const asked = await db.transaction().execute((tx) => requestBackup(tx, wakeups, { ...project, origin: "release" }));
    if (asked.outcome === "requested") return asked.id;
    await sleep(pollMs, undefined, { signal });
  }
}

async function copyStorage({ platform, deployment, log }: Release): Promise<void> {
  const { org_id, project_id, project_number, id: deployment_id } = deployment;
  const id = newId("snp");
  await insertSnapshot(platform.db, { id, org_id, project_id, deployment_id });
  const owner = { project_id, project_number };
  const kept = await keptSnapshots(platform.db, { org_id, project_id });
  const bytes = await platform.ports.runtime.copyStorage(owner, { id, keep: kept });
  await completeSnapshot(platform.db, { org_id, project_id, id }, bytes, kept);
  if (bytes !== null) log.detail(`Copy of the files in $STORAGE_DIR: ${id}`);
}
