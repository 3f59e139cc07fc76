import { createHash } from "node:crypto";
import { Readable } from "node:stream";
import { expired, isDue, packArchive, type BackupWindow } from "../../features/backups/backups.ts";
import {
  backupListKey,
  beginAttempt,
  endPlatformBackup,
  forgetPlatformBackup,
  keptProjects,
  platformBackups,
  platformSince,
  requestPlatformBackup,
  type ListedBackup,
  type PlatformBackup,
} from "../../features/platform/platform.ts";
import { StorageFull, StorageMissing, type Storage } from "../../ports/storage.ts";
import { provenTime } from "../../store/proven-time.ts";
import type { Task, Platform } from "../platform.ts";

const periodMs = 60_000;
const mostAttempts = 3;
/** In place of a project's id. */
const subject = "platform";

/**
 * Backs up the platform itself: once a day after the projects' own backups, and on request. Runs on the primary only, one backup at a time;
 * one that a crash interrupted is made again. `wake` makes the task run soon: whoever asks while something is under way waits no period.
 */
export function platformBackupsTask(platform: Platform, wake: () => void): Task {
  let running: Promise<void> | undefined;
  let isAskedAgain = false;
  let hasListed = false;
  return {
    name: "platform-backups",
    periodMs,
    topics: ["platform_backups"],
    async run(signal) {
      if (running !== undefined) {
        isAskedAgain = true;
        return { detail: "1 under way" };
      }
      await requestDaily(platform, await platformBackups(platform.db));
      const asked = (await platformBackups(platform.db)).find(({ status }) => status === "running");
      if (asked === undefined && hasListed) return { detail: "none under way" };
      // A crash, or a storage that was away, may have come between a backup's end and the list.
      hasListed = false;
      const work = asked === undefined ? applyRetention(platform, signal) : backUp(platform, asked, signal);
      running = work
        .then(() => void (hasListed = true))
        .catch((error: unknown) => {
          if (!signal.aborted) platform.log.error({ err: error }, "a backup of the platform did not end");
        })
        .finally(() => {
          running = undefined;
          if (isAskedAgain) wake();
          isAskedAgain = false;
        });
      return { detail: "1 under way" };
    },
    settle: async () => running,
  };
}

async function requestDaily(platform: Platform, backups: readonly PlatformBackup[]): Promise<void> {
  const { window } = platform.settings.backups;
  if (window === null) return;
  const now = platform.clock.now();
  const daily = backups.filter(
    ({ origin, created_at }) => origin === "daily" && Date.parse(created_at) <= now.getTime(),
  );
  const completed = daily.findIndex(({ status }) => status === "completed");
  const state = {
    ...{ project_id: subject, ready_at: await platformSince(platform.db) },
    ...{ last_at: daily[0]?.created_at ?? null, last_status: daily[0]?.status ?? null },
    failures: completed === -1 ? daily.length : completed,
  };
  if (isDue(state, endOf(window), now)) await requestPlatformBackup(platform.db, platform.wakeups, "daily");
}

/** Returns the last minute of the window, in which the projects' own backups have begun. */
const endOf = ({ startHour, hours }: BackupWindow): BackupWindow => ({
  startHour: (startHour + hours - 1 / 60) % 24,
  hours: 1 / 60,
});

async function backUp(platform: Platform, asked: PlatformBackup, signal: AbortSignal): Promise<void> {
  const { db, log, ports, settings } = platform;
  const { standard, named } = ports.storages;
  const storage = named[standard] as Storage;
  const { id, attempts } = asked;
  if (asked.storage_key !== null) await named[asked.storage ?? ""]?.delete(asked.storage_key, signal);
  if (attempts >= mostAttempts) return endPlatformBackup(db, id, { status: "failed", problem: gaveUp });
  const key = `platform/${id}-${attempts + 1}.tar.age`;
  await beginAttempt(db, id, { storage: standard, storage_key: key });
  const limited = AbortSignal.any([signal, AbortSignal.timeout(settings.backups.timeoutMs)]);
  try {
    const projects = (await keptProjects(db)).map((project) => project.id);
    const { content, taken_at, recipient, left_out } = await ports.platformArchive.pack(projects, limited);
    const stored = await store(storage, key, content, limited);
    const made = { ...stored, recipient, taken_at: taken_at.toISOString(), version: settings.monitors.version };
    const problem = left_out.length === 0 ? null : left_out.join(" ").slice(0, longestProblem);
    await endPlatformBackup(db, id, { status: "completed", problem, ...made });
  } catch (error) {
    if (signal.aborted) return;
    log.error({ err: error, backup: id }, "a backup of the platform failed");
    // What cannot be deleted now is deleted when the row expires.
    await storage
      .delete(key, signal)
      .catch((err: unknown) => log.warn({ err }, "could not delete a failed backup's file"));
    return endPlatformBackup(db, id, { status: "failed", problem: problemOf(error) });
  }
  await applyRetention(platform, signal);
}

const longestProblem = 500;
const gaveUp = "The control plane ended three times while it made this backup.";

function problemOf(error: unknown): string {
  if (error instanceof StorageFull) return "The storage of backups is full.";
  return (error instanceof Error ? error.message : String(error)).slice(0, longestProblem);
}

/** Stores the content and reads it back. Throws unless both are the same. */
async function store(storage: Storage, key: string, content: Readable, signal: AbortSignal) {
  const stored = await packArchive(content, { storage, key, signal, onBytes: () => {} });
  if ((await digestOf(await storage.open(key, signal))) !== stored.sha256)
    throw new Error("The storage returns other bytes than were stored.");
  return stored;
}

async function digestOf(content: Readable): Promise<string> {
  const digest = createHash("sha256");
  for await (const chunk of content as AsyncIterable<Buffer>) digest.update(chunk);
  return digest.digest("hex");
}

/** Deletes what is no longer kept, and writes each storage's list of what it has. */
async function applyRetention(platform: Platform, signal: AbortSignal): Promise<void> {
  const { db, ports, settings } = platform;
  const ended = (await platformBackups(db)).flatMap(({ status, ...backup }) =>
    status === "running" ? [] : [{ ...backup, status, is_verified: false }],
  );
  const old = new Set(expired(ended, settings.backups.retention, await provenTime(platform)));
  const kept = ended.filter(({ id }) => !old.has(id));
  for (const [name, storage] of Object.entries(ports.storages.named)) {
    const own = kept.filter((backup) => backup.storage === name && backup.status === "completed") as unknown;
    const list = JSON.stringify((own as ListedBackup[]).map(listed));
    if (list !== (await listOf(storage, signal)))
      await storage.put(backupListKey, Readable.from([Buffer.from(list)]), signal);
  }
  for (const { id, storage, storage_key } of ended.filter((backup) => old.has(backup.id))) {
    if (storage_key !== null) await ports.storages.named[storage ?? ""]?.delete(storage_key, signal);
    await forgetPlatformBackup(db, id);
  }
}

const listed = ({ id, taken_at, version, recipient, storage_key, sha256 }: ListedBackup): ListedBackup => ({
  ...{ id, taken_at, version, recipient, storage_key, sha256 },
});

async function listOf(storage: Storage, signal: AbortSignal): Promise<string> {
  try {
    return Buffer.concat(await (await storage.open(backupListKey, signal)).toArray()).toString();
  } catch (error) {
    if (error instanceof StorageMissing) return "[]";
    throw error;
  }
}
