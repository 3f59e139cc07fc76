import * as backups from "../../features/backups/backups.ts";
import { awaken, databaseOf, specOf, wantedDatabases } from "../../features/database/database.ts";
import { isOfPlatformBackup } from "../../features/platform/platform.ts";
import { lockProject, type ProjectKey } from "../../features/projects/projects.ts";
import { provenTime } from "../../store/proven-time.ts";
import type { Platform } from "../platform.ts";

/** Requests the automatic backups that are due; resolves to their number. */
export async function requestDueBackups(platform: Platform): Promise<number> {
  const { window } = platform.settings.backups;
  if (window === null) return 0;
  const now = platform.clock.now();
  const due = (await backups.dailyStates(platform.db, now)).filter((state) => backups.isDue(state, window, now));
  for (const { last_at: since, org_id, project_id, content } of due) {
    const wanted = { org_id, project_id, content, since, now };
    await platform.db.transaction().execute((tx) => backups.requestDailyBackup(tx, platform.wakeups, wanted));
  }
  await requestDueDrills(platform, window, now);
  return due.length;
}

/** Requests the day's drills, half a day after the backups. */
export async function requestDueDrills(
  { db, wakeups }: Platform,
  window: backups.BackupWindow,
  now: Date,
): Promise<void> {
  const later = { ...window, startHour: (window.startHour + 12) % 24 };
  for (const state of (await backups.drillStates(db)).filter((each) => backups.isDue(each, later, now)))
    await db.transaction().execute(async (tx) => {
      await lockProject(tx, state);
      await backups.requestDrill(tx, wakeups, { ...state, origin: "daily" });
    });
}

export async function dropUnwanted(platform: Platform, signal: AbortSignal): Promise<void> {
  await each({ platform, signal }, await backups.droppedDatabases(platform.db), async ({ name, ...owner }) => {
    const row = await awaken(platform, await databaseOf(platform.db, owner.org_id, owner.project_id));
    if (row !== undefined && row.database_name !== name)
      await platform.ports.postgresHost.dropDatabase(specOf(platform.vault, row), name);
    await backups.forgetRestored(platform.db, owner, name);
  });
}

/** Deletes backups past their retention or over their disk, of one project or all: marks them, then the file, then the row. */
export async function applyRetention(platform: Platform, signal: AbortSignal, project?: ProjectKey): Promise<void> {
  const { db, settings } = platform;
  const now = await provenTime(platform);
  const ended = await backups.endedBackups(db, project);
  for (const sameKind of Map.groupBy(ended, ({ project_id, content }) => `${project_id} ${content}`).values()) {
    const known = sameKind.map((backup) => ({
      ...backup,
      status: backup.status as "completed" | "failed",
      is_verified: backup.verification === "verified",
    }));
    const old = new Set(backups.expired(known, settings.backups.retention, now));
    const kept = known.filter(({ id }) => !old.has(id));
    const limit = known[0]?.backups_limit_bytes ?? settings.disk.backups_bytes;
    const gone = new Set([...old, ...backups.beyondLimit(kept, limit)]);
    for (const { id, org_id } of sameKind) if (gone.has(id)) await backups.expireBackup(db, org_id, id);
  }
  await deleteExpiredBackups(platform, signal);
  await deletePieces(platform, signal, project);
}

const atOnce = 1000;

/** Deletes the pieces that the last backup of the files found unused. */
async function deletePieces(platform: Platform, signal: AbortSignal, project?: ProjectKey): Promise<void> {
  await backups.markPurgedPieces(platform.db);
  for (;;) {
    const pieces = await backups.unusedPieces(platform.db, project, atOnce);
    let deleted = 0;
    await each({ platform, signal }, pieces, async (piece) => {
      const storage = platform.ports.storages.named[piece.storage];
      if (storage === undefined) return;
      await storage.delete(piece.storage_key, signal);
      await backups.forgetPiece(platform.db, piece, piece);
      deleted += 1;
    });
    if (deleted < atOnce) return;
  }
}

/** Deletes final backups of purged projects that are too old, or too large together. */
export async function applyFinalRetention({ db, settings, clock }: Platform): Promise<void> {
  const now = await provenTime({ db, clock });
  const byOrganization = Map.groupBy(await backups.finalBackups(db), (backup) => backup.org_id);
  for (const [orgId, finals] of byOrganization)
    for (const id of backups.endedFinals(finals, settings.backups.finalRetention, now))
      await backups.expireBackup(db, orgId, id);
}

export async function deleteExpiredBackups(platform: Platform, signal: AbortSignal): Promise<void> {
  await each(
    { platform, signal },
    await backups.expiredRows(platform.db),
    async ({ id, org_id, storage, storage_key }) => {
      const store = platform.ports.storages.named[storage ?? ""];
      // A file in a storage that is not configured now is deleted once the storage is configured again.
      if (storage !== null && store === undefined) return;
      if (storage_key !== null) await store?.delete(storage_key, signal);
      await backups.deleteExpired(platform.db, org_id, id);
    },
  );
}

/** Removes what crashes may have left: unfinished files, and scratch databases without an operation. */
export async function sweepLeftovers(platform: Platform, signal: AbortSignal): Promise<void> {
  await each({ platform, signal }, Object.entries(platform.ports.storages.named), async ([name, storage]) => {
    const removed = await storage.sweep(
      async (key) =>
        (await backups.isBeingStored(platform.db, name, key)) ||
        (await backups.isBeingArchived(platform.db, key)) ||
        (await isOfPlatformBackup(platform.db, key)),
      signal,
    );
    if (removed > 0) platform.log.info({ storage: name, removed }, "removed unfinished files of backups");
  });
  const rows = await wantedDatabases(platform.db);
  await each(
    { platform, signal },
    rows.filter(({ status }) => status === "ready"),
    async (row) => {
      const spec = specOf(platform.vault, row);
      // List databases before reading the names in use: a name is recorded as used before its database is created.
      const names = await platform.ports.postgresHost.listDatabases(spec);
      const used = await backups.namesInUse(platform.db, row.org_id, row.project_id);
      for (const name of names.filter((found) => found.startsWith(backups.scratchPrefix) && !used.has(found))) {
        await platform.ports.postgresHost.dropDatabase(spec, name);
      }
    },
  );
}

/** Continues after a failed item (a database that is down, a storage that is unavailable), until the signal; the next round tries it again. */
async function each<T>(
  { platform, signal }: { readonly platform: Platform; readonly signal: AbortSignal },
  items: readonly T[],
  work: (item: T) => Promise<void>,
): Promise<void> {
  for (const item of items) {
    if (signal.aborted) return;
    await work(item).catch((error: unknown) => {
      if (signal.aborted) return;
      platform.log.warn(
        { error: (error as Error).message },
        "the upkeep of backups is incomplete; it will be tried again",
      );
    });
  }
}
