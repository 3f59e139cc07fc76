import {
  dailyStates,
  deleteExpired,
  droppedDatabases,
  endedBackups,
  expireBackup,
  expired,
  expiredRows,
  forgetRestored,
  isBeingStored,
  isDue,
  namesInUse,
  requestDailyBackup,
  scratchPrefix,
} from "../features/backups/backups.ts";
import { databaseOf, specOf, wantedDatabases } from "../features/database/database.ts";
import type { World } from "./world.ts";

/** Asks for the automatic backups that are due; resolves with how many. */
export async function requestDueBackups(world: World): Promise<number> {
  const { daily, window } = world.settings.backups;
  if (!daily) return 0;
  const now = world.clock.now();
  const due = (await dailyStates(world.db, now)).filter((state) => isDue(state, window, now));
  for (const { org_id, project_id, last_at } of due) {
    await world.db
      .transaction()
      .execute((tx) => requestDailyBackup(tx, world.wakeups, { org_id, project_id, since: last_at, now }));
  }
  return due.length;
}

/** Drops the databases that their owners want dropped. */
export async function dropUnwanted(world: World): Promise<void> {
  await each(world, await droppedDatabases(world.db), async ({ name, ...owner }) => {
    const row = await databaseOf(world.db, owner.org_id, owner.project_id);
    if (row !== undefined && row.database_name !== name)
      await world.ports.postgresHost.dropDatabase(specOf(world.vault, row), name);
    await forgetRestored(world.db, owner, name);
  });
}

/** Deletes the backups that retention no longer keeps: first they are marked, then the file goes, then the row. */
export async function applyRetention(world: World): Promise<void> {
  const byProject = Map.groupBy(await endedBackups(world.db), (backup) => backup.project_id);
  for (const backups of byProject.values()) {
    const known = backups.map((backup) => ({
      ...backup,
      status: backup.status as "completed" | "failed",
      is_verified: backup.verification === "verified",
    }));
    const gone = new Set(expired(known, world.settings.backups.retention, world.clock.now()));
    for (const { id, org_id } of backups) if (gone.has(id)) await expireBackup(world.db, org_id, id);
  }
  await each(world, await expiredRows(world.db), async ({ id, org_id, storage, storage_key }) => {
    const store = world.ports.storages.named[storage ?? ""];
    // A file in a storage that is not configured now is deleted when it is again.
    if (storage !== null && store === undefined) return;
    if (storage_key !== null) await store?.delete(storage_key);
    await deleteExpired(world.db, org_id, id);
  });
}

/** Removes what crashes may have left: unfinished files, and scratch databases that nobody works with. */
export async function sweepLeftovers(world: World): Promise<void> {
  await each(world, Object.entries(world.ports.storages.named), async ([name, storage]) => {
    const removed = await storage.sweep((key) => isBeingStored(world.db, name, key));
    if (removed > 0) world.log.info({ storage: name, removed }, "removed unfinished files of backups");
  });
  const rows = await wantedDatabases(world.db);
  await each(
    world,
    rows.filter(({ status }) => status === "ready"),
    async (row) => {
      const spec = specOf(world.vault, row);
      // Listed before it is asked what is in use: a name is in use before its database is made.
      const names = await world.ports.postgresHost.listDatabases(spec);
      const used = await namesInUse(world.db, row.org_id, row.project_id);
      for (const name of names.filter((found) => found.startsWith(scratchPrefix) && !used.has(found))) {
        await world.ports.postgresHost.dropDatabase(spec, name);
      }
    },
  );
}

/** One database that is down, or a storage that is away, is no reason to leave the others alone. It comes up again next time. */
async function each<T>(world: World, items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  for (const item of items) {
    await work(item).catch((error: unknown) => {
      world.log.warn({ error: (error as Error).message }, "the upkeep of backups left something for later");
    });
  }
}
