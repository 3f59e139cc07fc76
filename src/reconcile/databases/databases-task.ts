import { hasRunning } from "../../features/backups/backups.ts";
import * as database from "../../features/database/database.ts";
import { diskUseOf, saveDatabaseSize } from "../../features/disk/disk.ts";
import { markVariablesChanged } from "../../features/env/env.ts";
import { lockProject } from "../../features/projects/projects.ts";
import { lockSleeping } from "../../features/sleep/sleep.ts";
import { isWithin } from "../../kit/day-hours.ts";
import { mapWithConcurrency } from "../../kit/map-with-concurrency.ts";
import { PartMissing } from "../../kit/part-missing.ts";
import type { ServerAddress } from "../../kit/server-address.ts";
import { settlesWithin } from "../../kit/settles-within.ts";
import type { DataDisk } from "../../ports/data-disk.ts";
import type { Failure } from "../../ports/failure.ts";
import type { DatabaseEndpoint } from "../../ports/postgres-host.ts";
import { holdLease, releaseDeadLeases, type Lease } from "../../store/leases.ts";
import type { Task, Platform } from "../platform.ts";

const maxConcurrency = 4;
// How long a run waits for one database. A recovery takes minutes; it then continues in the background while other databases are checked.
const patienceMs = 15_000;

/** Creates requested databases and keeps all of them running, except those of previews that sleep. */
export function databasesTask(platform: Platform, resting: Resting = createResting()): Task {
  const repairs = new Map<string, Promise<void>>();
  // Databases that this control plane has applied its settings to. Servers outlive the control plane, so each is repaired once after a start.
  const inLine = new Set<string>();

  /** A failure of one database must not stop the loop. */
  async function reconcileDatabase(row: database.DatabaseRow, signal: AbortSignal): Promise<"fine" | "down"> {
    try {
      if (repairs.has(row.id)) return "down";
      const isKnown = row.status === "ready" && inLine.has(row.id);
      if (isKnown && resting.isResting(row.id) && platform.ports.postgresHost.hasProcess(row.id)) return "fine";
      resting.wake(row.id);
      const fine = await isHealthy(platform, row, resting);
      if (fine && inLine.has(row.id)) return "fine";
      const work = repairDatabase(platform, row, { signal, fine })
        .then((done) => void (done && inLine.add(row.id)))
        .catch((error: unknown) => logFailure(platform, row, error))
        .finally(() => repairs.delete(row.id));
      repairs.set(row.id, work);
      await settlesWithin(work, patienceMs);
      if (fine) return "fine";
    } catch (error) {
      logFailure(platform, row, error);
    }
    return "down";
  }

  return {
    name: "databases",
    periodMs: 5000,
    topics: ["databases"],
    async run(signal) {
      await releaseDeadLeases(platform.db, "project_database");
      for (const server of await database.sleepingServers(platform.db)) await stopSleeping(platform, server);
      const rows = await database.wantedDatabases(platform.db);
      await resting.begin(platform.ports.dataDisk);
      let down = 0;
      await mapWithConcurrency(rows, maxConcurrency, async (row) => {
        if (!signal.aborted && (await reconcileDatabase(row, signal)) === "down") down += 1;
      });
      const replaced = down === 0 && !signal.aborted ? await replacedDatabase(platform, rows) : undefined;
      if (replaced !== undefined) await platform.ports.postgresHost.stop(replaced.id);
      if (replaced !== undefined) await reconcileDatabase(replaced, signal);
      return { detail: down === 0 ? `${rows.length} running` : `${rows.length} wanted, ${down} had to be started` };
    },
    async settle() {
      await Promise.all(repairs.values());
    },
  };
}

/** Stops a server whose preview still sleeps. Its row is locked meanwhile, so that whoever wakes the preview then finds that it is stopped. */
async function stopSleeping({ db, log, ports }: Platform, { id, used_by }: database.SleepingServer): Promise<void> {
  if (!ports.postgresHost.hasProcess(id)) return;
  try {
    await db.transaction().execute(async (tx) => {
      if (await lockSleeping(tx, used_by)) await ports.postgresHost.stop(id);
    });
  } catch (error) {
    log.error(
      { err: error, database: id },
      "the database of a preview that sleeps could not be stopped; it will be tried again",
    );
  }
}

/** Returns a database to restart for its updated PostgreSQL, if this is the hour; the next run finds the next one. */
async function replacedDatabase(
  { db, log, ports, settings, clock }: Platform,
  rows: readonly database.DatabaseRow[],
): Promise<database.DatabaseRow | undefined> {
  if (!isWithin(settings.restartHours, clock.now())) return undefined;
  for (const row of rows) {
    if (row.status !== "ready" || !(await ports.postgresHost.isReplaced(row.id))) continue;
    // A restart would end it.
    if (await hasRunning(db, row.org_id, row.project_id)) continue;
    log.info({ database: row.id }, "an update has replaced PostgreSQL: the database is restarted");
    return row;
  }
  return undefined;
}

function logFailure(platform: Platform, row: database.DatabaseRow, error: unknown): void {
  platform.log.error({ err: error, database: row.id }, "could not reconcile a database; it will be tried again");
}

/** Returns whether a database needs no repair: its row is `ready`, its server runs, and its owner has not changed the role. */
async function isHealthy(platform: Platform, row: database.DatabaseRow, resting: Resting): Promise<boolean> {
  if (row.status !== "ready") return false;
  const seen = await platform.ports.postgresHost.observe(database.specOf(platform.vault, row));
  if (seen.state !== "running") return false;
  await saveDatabaseSize(platform.db, row, seen);
  if (!isSamePlace(database.serverOf(row), seen.endpoint)) return false;
  if (seen.intact && !seen.compacting) {
    const { limits } = await diskUseOf(platform.db, row, platform.settings.disk);
    resting.rest(row.id, { bytes: seen.size_bytes, limitBytes: limits.database_bytes });
  }
  return seen.intact;
}

const isSamePlace = (one: ServerAddress | null, other: ServerAddress): boolean =>
  one !== null && one.host === other.host && one.port === other.port;

/** Resolves to true if the host has everything as requested. A database that was running is not marked as failed when another step fails. */
async function repairDatabase(
  platform: Platform,
  row: database.DatabaseRow,
  { signal, fine }: { signal: AbortSignal; fine: boolean },
): Promise<boolean> {
  const lease = await database.takeDatabase(platform.db, row.id, platform.owner);
  if (lease === undefined) return false;
  // Recovery on a full disk would only use up what is left, so the server starts once there is space again.
  const { is_full } = await platform.ports.dataDisk.observe();
  const started =
    is_full && !fine
      ? noRoom
      : await holdLease(platform.db, lease, signal, (held) => startDatabase(platform, row, held));
  if (signal.aborted) return false;
  const isStarted = !("stage" in started);
  if (isStarted) await markDatabaseReady(platform, row, lease, started);
  else if (!fine) await database.databaseFailed(platform.db, lease, started);
  await platform.wakeups.send(platform.db, "outcomes", row.id);
  return isStarted;
}

const failure: Failure = {
  stage: "boot",
  code: "database_failed",
  summary: "The database could not be started.",
  hint: "Try again. If the error persists, ask the operator to look at the log.",
  log_tail: [],
};

const noRoom: Failure = {
  ...failure,
  code: "storage_full",
  summary: "The platform's disk is too full for the database.",
  hint: "Ask the operator to free space; the database then starts without further action.",
};

/** Resolves to a failure if the host can't start it. Errors from writing Berth's own rows are handled separately. */
async function startDatabase(
  platform: Platform,
  row: database.DatabaseRow,
  signal: AbortSignal,
): Promise<DatabaseEndpoint | Failure> {
  try {
    return await platform.ports.postgresHost.ensure(database.specOf(platform.vault, row), signal);
  } catch (error) {
    if (signal.aborted) return failure;
    if (error instanceof PartMissing)
      return { ...failure, code: database.partMissing, summary: error.summary, hint: error.hint };
    platform.log.error({ err: error, database: row.id }, "a database could not be started; it will be tried again");
    const summary = error instanceof Error ? (error.message.split("\n")[0] ?? "") : String(error);
    platform.log.debug({ summary }, "the reason that the database host reported");
    return failure;
  }
}

async function markDatabaseReady(
  platform: Platform,
  row: database.DatabaseRow,
  lease: Lease,
  endpoint: DatabaseEndpoint,
): Promise<void> {
  await platform.db.transaction().execute(async (tx) => {
    await lockProject(tx, row);
    if (!(await database.databaseReady(tx, lease, endpoint))) return;
    // For a new database or a new address, restart the application with the new variables.
    const before = database.serverOf(row);
    const { endpointFor } = platform.ports.runtime;
    // Applications wait for a database that was ready; those of any other run already, with the way to the server's old place.
    const isReached = before !== null && isSamePlace(endpointFor(before), endpointFor(endpoint));
    if (isReached && (row.status === "ready" || isSamePlace(before, endpoint))) return;
    await markVariablesChanged(platform.wakeups, tx, row);
  });
}

/** Tracks which databases can skip a full check. A check opens connections and reads sizes, which would cost too much for many idle databases. */
export type Resting = ReturnType<typeof createResting>;

const restMs = 30_000;
const muchWrittenBytes = 64 * 1024 ** 2;

export function createResting(now: () => number = () => performance.now()) {
  const until = new Map<string, number>();
  let mostAvailable = 0;
  return {
    /** Starts a round. If much was written to the disk since the last full check, all databases are checked, to find the one that wrote it. */
    async begin(disk: DataDisk) {
      const { available_bytes } = await disk.observe();
      if (available_bytes < mostAvailable - muchWrittenBytes) {
        until.clear();
        mostAvailable = available_bytes;
      }
      mostAvailable = Math.max(mostAvailable, available_bytes);
    },
    isResting: (id: string) => (until.get(id) ?? -Infinity) > now(),
    /** Call after a check that found no problem. */
    rest(id: string, { bytes, limitBytes }: { readonly bytes: number; readonly limitBytes: number }) {
      // A database that uses half of its limit or more is checked in every round.
      if (bytes * 2 < limitBytes) until.set(id, now() + restMs);
    },
    wake: (id: string) => void until.delete(id),
  };
}
