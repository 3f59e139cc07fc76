import * as backups from "../../features/backups/backups.ts";
import { specOf, wantedDatabases, type DatabaseRow } from "../../features/database/database.ts";
import { mapWithConcurrency } from "../../kit/map-with-concurrency.ts";
import { HistoryNeedsRestart, type DatabaseHistory } from "../../ports/postgres-host.ts";
import { StorageFull } from "../../ports/storage.ts";
import type { Task, Platform } from "../platform.ts";
import { applyArchiveRetention, deleteExpiredChains, dropUnfinishedCopies, makeCopy } from "./archive-upkeep.ts";
import { endOpenChain, storeLog } from "./store-log.ts";

const maxConcurrency = 4;
const confirmEveryMs = 15_000;
const retentionEveryMs = 3_600_000;
/** After a copy failed: soon enough for one within ten minutes after the storage is back. */
const copyAgainMs = 180_000;
/** An archive whose log is still not stored then is behind. */
const patienceMs = 60_000;

/** Stores the log of databases every few seconds and copies their instances, for restores to any moment. On the primary only. */
export function archivesTask(platform: Platform): Task {
  const { db, settings } = platform;
  const { archiveDays, archiveEveryMs } = settings.backups;
  const copier = createCopier(platform);
  const [restarted, settled] = [new Set<string>(), new Set<string>()];
  let confirmedMs = -Infinity;
  let retainedMs = -Infinity;
  return {
    name: "archives",
    periodMs: archiveEveryMs,
    topics: ["archives"],
    async run(signal) {
      const begunMs = performance.now();
      const isRetentionDue = begunMs - retainedMs >= retentionEveryMs;
      if (isRetentionDue && !copier.isCopying()) await dropUnfinishedCopies(platform, signal);
      const rows = (await wantedDatabases(db)).filter(({ status }) => status === "ready");
      const wanted = rows.filter((row) => archiveDays > 0 && row.archived && row.project_deleted_at === null);
      const idle: Idle[] = [];
      await mapWithConcurrency(wanted, maxConcurrency, async (row) => {
        const found = signal.aborted ? undefined : await archive(platform, row, { copier, restarted, settled, signal });
        if (found !== undefined) idle.push(found);
      });
      const storedMs = performance.now() - begunMs;
      // Rarely, because there may be many.
      if (performance.now() - confirmedMs >= confirmEveryMs) {
        confirmedMs = performance.now();
        await confirm(platform, idle);
      }
      await endUnwanted(platform, rows, new Set(wanted.map(({ id }) => id)));
      if (isRetentionDue) {
        retainedMs = performance.now();
        settled.clear();
        for (const row of rows) await applyArchiveRetention(platform, row, signal);
        await deleteExpiredChains(platform, signal);
        await backups.deleteOldDrills(db);
      }
      // What is written just after a look is stored at the end of the next one: a period later, as all of them take about as long.
      const againMs = Math.max(archiveEveryMs / 2, 0.9 * archiveEveryMs - 2 * storedMs);
      return { detail: `${wanted.length} archived, ${idle.length} idle`, againMs };
    },
    settle: () => copier.settle(),
  };
}

/** Makes one copy at a time. */
interface Copier {
  start(row: DatabaseRow, chain: backups.ArchiveChain, history: DatabaseHistory, signal: AbortSignal): void;
  isCopying(): boolean;
  hasFailed(id: string): boolean;
  /** Its copy has failed, and is not tried again yet. */
  isResting(id: string): boolean;
  /** Its copy may be tried again at once. */
  wake(id: string): void;
  settle(): Promise<void>;
}

function createCopier(platform: Platform): Copier {
  const { db, log, settings } = platform;
  const failedMs = new Map<string, number>();
  let copying: Promise<void> | undefined;
  const copy = async (row: DatabaseRow, chain: backups.ArchiveChain, history: DatabaseHistory, signal: AbortSignal) => {
    const limited = AbortSignal.any([signal, AbortSignal.timeout(settings.backups.timeoutMs)]);
    try {
      await makeCopy(platform, { row, chain, history }, limited);
      failedMs.delete(row.id);
      await applyArchiveRetention(platform, row, signal);
      // Its window begins once the log of its making is stored.
      await platform.wakeups.send(db, "archives");
    } catch (error) {
      failedMs.set(row.id, performance.now());
      if (signal.aborted) return;
      log.error({ err: error, database: row.id }, "a database could not be copied into its archive");
      await backups.setArchiveProblem(db, row.id, wordsFor(error)).catch(() => {});
    }
  };
  const isResting = (id: string) => performance.now() - (failedMs.get(id) ?? -Infinity) < copyAgainMs;
  return {
    isResting,
    wake: (id) => void failedMs.delete(id),
    isCopying: () => copying !== undefined,
    start(row, chain, history, signal) {
      if (copying === undefined && !isResting(row.id))
        copying = copy(row, chain, history, signal).finally(() => (copying = undefined));
    },
    hasFailed: (id) => failedMs.has(id),
    settle: async () => copying,
  };
}

/** A chain that is stored up to `until` without new log. */
interface Idle {
  readonly id: string;
  readonly until: Date;
}

interface Archiving {
  readonly copier: Copier;
  readonly restarted: Set<string>;
  /** The databases that needed no copy at the last look. */
  readonly settled: Set<string>;
  readonly signal: AbortSignal;
}

/** Stores one database's log, and begins a copy if it needs one. A failure is the database's own, and shown. */
async function archive(platform: Platform, row: DatabaseRow, by: Archiving): Promise<Idle | undefined> {
  const { db, log, ports, clock } = platform;
  const history = ports.postgresHost.history(row.id);
  if (history === null) await backups.setArchiveProblem(db, row.id, backups.ownServer);
  if (history === null) return undefined;
  // A storage that answers nothing fails late.
  const late = setTimeout(() => void backups.setArchiveProblem(db, row.id, isLate).catch(() => {}), patienceMs);
  try {
    const { chain, until, isIdle } = await storeLog(platform, row, { history, signal: by.signal });
    // Nothing has changed for an idle database, unless its copy could not be made.
    const isSettled = isIdle && by.settled.has(row.id);
    const span = isSettled ? undefined : (await backups.readSpans(db, [chain])).spans.at(-1);
    const needs = span !== undefined && backups.needsCopy(span, clock.now());
    by.settled[needs ? "delete" : "add"](row.id);
    if (needs && by.copier.isResting(row.id) && backups.isOverlong(span))
      await endOpenChain(db, chain, "No copy of the database could be made, and its log had become too long.");
    if (needs && ports.postgresHost.hasProcess(row.id)) by.copier.start(row, chain, history, by.signal);
    if (row.archive_problem !== null && !by.copier.hasFailed(row.id)) await backups.setArchiveProblem(db, row.id, null);
    return isIdle ? { id: chain.id, until } : undefined;
  } catch (error) {
    if (by.signal.aborted || !ports.postgresHost.hasProcess(row.id)) return undefined;
    if (error instanceof HistoryNeedsRestart && !by.restarted.has(row.id)) {
      // It was started before Berth kept its log: its owner asked for the archive, and so for this restart.
      by.restarted.add(row.id);
      await ports.postgresHost.stop(row.id);
      await platform.wakeups.send(db, "databases", row.project_id);
    }
    log.warn({ error: (error as Error).message, database: row.id }, "a database's log could not be stored");
    // Once log can be stored again, a copy probably can.
    by.copier.wake(row.id);
    await backups.setArchiveProblem(db, row.id, wordsFor(error));
    return undefined;
  } finally {
    clearTimeout(late);
  }
}

const isLate = "The storage has taken the database's log for more than a minute, or does not answer.";

async function confirm({ db }: Platform, idle: readonly Idle[]): Promise<void> {
  const ids = idle.map(({ id }) => id);
  await backups.confirmChains(db, ids, new Date(Math.min(...idle.map(({ until }) => until.getTime()))));
}

async function endUnwanted(
  platform: Platform,
  rows: readonly DatabaseRow[],
  wanted: ReadonlySet<string>,
): Promise<void> {
  for (const chain of await backups.openChains(platform.db)) {
    const row = rows.find(({ id }) => id === chain.database_id);
    // The log of a deleted project's database goes on where it ended, once the project is back.
    if (row === undefined || row.project_deleted_at !== null || wanted.has(row.id)) continue;
    await platform.ports.postgresHost.history(row.id)?.end(specOf(platform.vault, row));
    await endOpenChain(platform.db, chain, "The archive was turned off.");
  }
}

const longestProblem = 300;

function wordsFor(error: unknown): string {
  if (error instanceof StorageFull) return "The platform's backup storage is full.";
  if (error instanceof HistoryNeedsRestart) return error.message;
  return `The database's log could not be stored: ${(error as Error).message}`.slice(0, longestProblem);
}
