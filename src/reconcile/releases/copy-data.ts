import { setTimeout as sleep } from "node:timers/promises";
import { findBackup, requestBackup } from "../../features/backups/backups.ts";
import { databaseOf } from "../../features/database/database.ts";
import { emptyFolderBytes } from "../../kit/folder-bytes.ts";
import type { Failure } from "../../ports/failure.ts";
import { releaseFailure } from "./release-failures.ts";
import type { Release } from "./start-processes.ts";

const pollMs = 250;

/**
 * Backs up what the release command may change: the files in `$STORAGE_DIR`, and the database if a token in approval mode asked for the
 * deploy, because no human has seen what the command does. Returns the failure of such a deployment when a backup can't be completed; the
 * command must not run then. A person's deploy goes on without the backup of its files.
 */
export async function copyData(release: Release): Promise<Failure | undefined> {
  const { platform, deployment, log, signal } = release;
  const { org_id, project_id, project_number, copies_data } = deployment;
  try {
    const database = copies_data ? await databaseOf(platform.db, org_id, project_id) : undefined;
    if (database?.engine_version) await backUp(release, "database");
    const bytes = await platform.ports.runtime.storageBytes({ project_id, project_number });
    if (bytes === null || bytes > emptyFolderBytes) await backUp(release, "files");
    return undefined;
  } catch (error) {
    signal.throwIfAborted();
    platform.log.warn({ err: error, deployment: deployment.id }, "no backup before a release command");
    const reason = error instanceof NoBackup ? error.message : "the data could not be backed up";
    if (copies_data)
      return releaseFailure("release", "copy_failed", `The release command did not run, because ${reason}.`);
    log.detail(`No backup of the files before the release command: ${reason}.`);
    return undefined;
  }
}

/** Its message is a clause for the pusher. */
class NoBackup extends Error {}

const words = { database: "the database", files: "the files in $STORAGE_DIR" };

async function backUp(release: Release, content: "database" | "files"): Promise<void> {
  const { platform, deployment, log, signal } = release;
  log.step(`Backing up ${words[content]} before the release command`);
  const id = await requested(release, content);
  for (;;) {
    const backup = await findBackup(platform.db, deployment, id);
    if (backup?.status === "completed") return log.detail(`Backup of ${words[content]}: ${id}`);
    if (backup?.status !== "running")
      throw new NoBackup(`${words[content]} could not be backed up: ${backup?.problem ?? "the backup is missing"}`);
    await sleep(pollMs, undefined, { signal });
  }
}

async function requested(release: Release, content: "database" | "files"): Promise<string> {
  const { platform, deployment, signal } = release;
  const { org_id, project_id } = deployment;
  const wanted = { org_id, project_id, content, origin: "release" } as const;
  for (;;) {
    const asked = await platform.db.transaction().execute((tx) => requestBackup(tx, platform.wakeups, wanted));
    if (asked.outcome === "requested") return asked.id;
    await sleep(pollMs, undefined, { signal });
  }
}
