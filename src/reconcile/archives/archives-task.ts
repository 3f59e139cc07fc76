import {
  basesOf,
  confirmChains,
  needsBase,
  openChains,
  ownServer,
  endChain,
  setArchiveProblem,
  type ArchiveChain,
} from "../../features/backups/backups.ts";
import { specOf, wantedDatabases, type DatabaseRow } from "../../features/database/database.ts";
import { mapWithConcurrency } from "../../kit/map-with-concurrency.ts";
import { HistoryNeedsRestart, type DatabaseHistory } from "../../ports/database-history.ts";
import { StorageFull } from "../../ports/storage.ts";
import type { Task } from "../driver.ts";
import type { Platform } from "../platform.ts";
import { applyArchiveRetention, deleteExpiredChains, dropUnfinishedBases, makeBase } from "./archive-upkeep.ts";
import { storeLog } from "./store-log.ts";

const maxConcurrency = 4;
const confirmEveryMs = 60_000;
const retentionEveryMs = 3_600_000;
/** After a copy failed. */
const baseAgainMs = 300_000;

/**
 * Stores the log of databases every few seconds and copies their instances, so that any moment can be restored. Runs on the primary only.
 * One copy is made at a time; it runs in the background.
 */
export function archivesTask(platform: Platform): Task {
  const { db, log, ports, settings } = platform;
  const confirmed = { atMs: -Infinity };
  const retained = { atMs: -Infinity };
  const restarted = new Set<string>();
  const failedBases = new Map<string, number>();
  let copying: Promise<void> | undefined;
  let hasBegun = false;

  function copyIfNeeded(row: DatabaseRow, chain: ArchiveChain, history: DatabaseHistory, signal: AbortSignal): void {
    const failedAt = failedBases.get(row.id) ?? -Infinity;
    if (copying !== undefined || performance.now() - failedAt < baseAgainMs) return;
    copying = makeBase(platform, { row, chain, history }, AbortSignal.any([signal, AbortSignal.timeout(settings.backups.timeoutMs)]))
      .then(() => void failedBases.delete(row.id))
      .then(() => applyArchiveRetention(platform, row))
      // Its window begins once the log of its making is stored.
      .then(() => platform.wakeups.send(db, "archives"))
      .catch(async (error: unknown) => {
        failedBases.set(row.id, performance.now());
        if (signal.aborted) return;
        log.error({ err: error, database: row.id }, "a database could not be copied into its archive");
        await setArchiveProblem(db, row.id, wordsFor(error)).catch(() => {});
      })
      .finally(() => (copying = undefined));
  }

  /** Returns the chain if it is stored up to `until` without any new log. */
  async function archive(row: DatabaseRow, signal: AbortSignal): Promise<{ id: string; until: Date } | undefined> {
    const history = ports.postgresHost.history(row.id);
    if (history === null) await setArchiveProblem(db, row.id, ownServer);
    if (history === null || !ports.postgresHost.hasProcess(row.id)) return undefined;
    try {
      const { chain, until, isIdle } = await storeLog(platform, row, history);
      if (needsBase(await basesOf(db, [chain.id]), platform.clock.now())) copyIfNeeded(row, chain, history, signal);
      if (!failedBases.has(row.id)) await setArchiveProblem(db, row.id, null);
      return isIdle ? { id: chain.id, until } : undefined;
    } catch (error) {
      if (error instanceof HistoryNeedsRestart && !restarted.has(row.id)) await restart(row);
      log.warn({ error: (error as Error).message, database: row.id }, "a database's log could not be stored");
      await setArchiveProblem(db, row.id, wordsFor(error));
      return undefined;
    }
  }

  /** A database that was started before Berth kept its log: its owner asked for the archive, and so for this restart. */
  async function restart(row: DatabaseRow): Promise<void> {
    restarted.add(row.id);
    await ports.postgresHost.stop(row.id);
    await platform.wakeups.send(db, "databases", row.project_id);
  }

  async function upkeep(rows: readonly DatabaseRow[]): Promise<void> {
    if (performance.now() - retained.atMs < retentionEveryMs) return;
    retained.atMs = performance.now();
    for (const row of rows) await applyArchiveRetention(platform, row);
    await deleteExpiredChains(platform);
  }

  return {
    name: "archives",
    periodMs: settings.backups.archiveEveryMs,
    topics: ["archives"],
    async run(signal) {
      if (!hasBegun) await dropUnfinishedBases(platform);
      hasBegun = true;
      const rows = (await wantedDatabases(db)).filter(({ status }) => status === "ready");
      const isWanted = settings.backups.archiveDays > 0;
      const wanted = rows.filter(({ archived, project_deleted_at }) => isWanted && archived && project_deleted_at === null);
      const idle: { id: string; until: Date }[] = [];
      await mapWithConcurrency(wanted, maxConcurrency, async (row) => {
        const found = signal.aborted ? undefined : await archive(row, signal);
        if (found !== undefined) idle.push(found);
      });
      await confirm(idle);
      await endUnwanted(rows, new Set(wanted.map(({ id }) => id)));
      await upkeep(rows);
      return { detail: `${wanted.length} archived, ${idle.length} idle` };
    },
    settle: async () => copying,
  };

  /** Records that idle databases are stored up to now: rarely, because there may be many. */
  async function confirm(idle: readonly { readonly id: string; readonly until: Date }[]): Promise<void> {
    const [first] = idle.toSorted((a, b) => a.until.getTime() - b.until.getTime());
    if (first === undefined || performance.now() - confirmed.atMs < confirmEveryMs) return;
    confirmed.atMs = performance.now();
    await confirmChains(db, idle.map(({ id }) => id), first.until);
  }

  async function endUnwanted(rows: readonly DatabaseRow[], wanted: ReadonlySet<string>): Promise<void> {
    for (const chain of await openChains(db)) {
      const row = rows.find(({ id }) => id === chain.database_id);
      // The log of a deleted project's database goes on where it ended, once the project is back.
      if (row === undefined || row.project_deleted_at !== null || wanted.has(row.id)) continue;
      await ports.postgresHost.history(row.id)?.end(specOf(platform.vault, row));
      await endChain(db, chain.id, "The archive was turned off.");
    }
  }
}

const longestProblem = 300;

function wordsFor(error: unknown): string {
  if (error instanceof StorageFull) return "The platform's backup storage is full.";
  if (error instanceof HistoryNeedsRestart) return error.message;
  return `The database's log could not be stored: ${(error as Error).message}`.slice(0, longestProblem);
}
