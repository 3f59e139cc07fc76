import { setTimeout as sleep } from "node:timers/promises";
import { isOfBuild } from "../../contract/states.ts";
import { createLineSplitter } from "../../kit/log-lines.ts";
import type { Failure } from "../../ports/failure.ts";
import type { Workload } from "../../ports/runtime.ts";
import { requireLease } from "../../store/leases.ts";
import { rehearse } from "./rehearse.ts";
import { releaseCommandFailure, releaseFailure } from "./release-failures.ts";
import type { Release } from "./start-processes.ts";
import { findBackup, requestBackup } from "../../features/backups/backups.ts";
import { databaseOf } from "../../features/database/database.ts";
import { emptyFolderBytes } from "../../kit/folder-bytes.ts";

/** How long a statement of a rehearsed release command waits for a lock: all later queries of the application wait behind it. */
const lockTimeoutMs = 5000;
const pausesMs = [1000, 5000, 15_000];

/** As PostgreSQL says it, and its code as drivers show it. */
const lockTimedOut = /canceling statement due to lock timeout|\b55P03\b/;

/** Runs the release command, first on a copy of the data, then on the data itself. Returns undefined if it succeeded, or there is none. */
export async function runReleaseCommand(release: Release): Promise<Failure | undefined> {
  const { deployment, workload, log, signal } = release;
  const command = deployment.image.release_command;
  if (command === null || !isOfBuild(deployment.trigger)) return undefined;
  const rehearsed = await rehearse(release, command);
  if (typeof rehearsed !== "string") return rehearsed;
  const obstacle = await copyData(release);
  if (obstacle !== undefined) return obstacle;
  log.step(`Running the release command: ${command}`);
  if (rehearsed === "skipped") return (await runOnce(release, workload, command)).failure;
  const bounded = { ...workload, env: withLockTimeout(workload.env) };
  for (const pauseMs of [...pausesMs, null]) {
    const { failure, waitedTooLong } = await runOnce(release, bounded, command);
    if (failure === undefined || !waitedTooLong || pauseMs === null) return failure;
    log.problem(`A lock was not free within ${lockTimeoutMs / 1000} s; trying again in ${pauseMs / 1000} s`);
    await sleep(pauseMs, undefined, { signal });
  }
  return undefined;
}

async function runOnce({ platform, lease, log, signal }: Release, workload: Workload, command: string) {
  let waitedTooLong = false;
  const lines = createLineSplitter((text) => {
    waitedTooLong ||= lockTimedOut.test(text);
    log.detail(text);
  });
  const limits = { timeoutMs: platform.settings.releaseTimeoutMs, silenceMs: platform.settings.buildLimits.silenceMs };
  await requireLease(platform.db, lease);
  const result = await platform.ports.runtime.runOnce(workload, { command, ...limits, signal, onOutput: lines.push });
  lines.end();
  return { failure: releaseCommandFailure(result, command), waitedTooLong };
}

/** Sets the limit in the address of the database, which every client understands, and in libpq's variable. */
function withLockTimeout(env: Workload["env"]): Workload["env"] {
  const option = `-c lock_timeout=${lockTimeoutMs}`;
  const url = env["DATABASE_URL"];
  if (url === undefined) return env;
  const query = `${url.includes("?") ? "&" : "?"}options=${encodeURIComponent(option)}`;
  return { ...env, DATABASE_URL: url + query, PGOPTIONS: [env["PGOPTIONS"], option].filter(Boolean).join(" ") };
}

const pollMs = 250;

/**
 * Backs up what the release command may change: the files in `$STORAGE_DIR`, and the database if a token in approval mode asked for the
 * deploy, because no human has seen what the command does. Returns the failure of such a deployment when a backup can't be completed; the
 * command must not run then. A person's deploy goes on without the backup of its files.
 */
async function copyData(release: Release): Promise<Failure | undefined> {
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
    const backup = await findBackup(platform.db, deployment.org_id, id);
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
