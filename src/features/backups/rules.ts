import { createHash } from "node:crypto";

/** When the daily automatic backups are taken: they start at `startHour` (UTC) and spread over `hours` hours. */
export interface BackupWindow {
  readonly startHour: number;
  readonly hours: number;
}

/** How many automatic and how many manual backups are kept. */
export interface Retention {
  readonly daily: number;
  readonly weekly: number;
  readonly manual: number;
}

const minuteMs = 60_000;
const dayMs = 24 * 60 * minuteMs;

/** Returns the latest time, up to now, at which the project's automatic backup was due; each project has its own minute of the day. */
export function lastDue(projectId: string, window: BackupWindow, now: Date): Date {
  const spread = createHash("sha256").update(projectId).digest().readUInt32BE(0) % (window.hours * 60);
  // A window may reach beyond midnight.
  const ofDay = ((window.startHour * 60 + spread) * minuteMs) % dayMs;
  const midnight = Math.floor(now.getTime() / dayMs) * dayMs;
  const today = midnight + ofDay;
  return new Date(today <= now.getTime() ? today : today - dayMs);
}

export interface DailyState {
  readonly project_id: string;
  /** Since when there is something to back up. */
  readonly ready_at: string | null;
  readonly last_at: string | null;
  readonly last_status: "running" | "completed" | "failed" | null;
  /** How many failed since the last successful one. */
  readonly failures: number;
}

const retryMs = 30 * minuteMs;
const mostTries = 3;

/** Returns whether the automatic backup should be taken now: it is due, or its last attempt failed a while ago. Stops after three failures a day. */
export function isDue(state: DailyState, window: BackupWindow, now: Date): boolean {
  const due = lastDue(state.project_id, window, now).getTime();
  if (state.ready_at === null || Date.parse(state.ready_at) > due) return false;
  const last = state.last_at === null ? null : Date.parse(state.last_at);
  if (last === null || last < due) return true;
  if (state.last_status !== "failed" || state.failures % mostTries === 0) return false;
  return now.getTime() - last >= retryMs;
}

export interface KeptBackup {
  readonly id: string;
  readonly origin: "manual" | "daily" | "final" | "release";
  readonly status: "completed" | "failed";
  readonly created_at: string;
  readonly is_verified: boolean;
}

const failedDays = 30;
const releasesKept = 5;
// As much as `believable` in queries.ts allows.
const aheadMs = 60 * minuteMs;

/**
 * Returns the ids of one project's backups that are no longer needed. Keeps the newest automatic backup of each of the configured days and
 * weeks, the configured number of manual ones, five before release commands, and always the newest and the newest verified backup. Those
 * dated in the future, by a clock that was or is ahead, stay and take no other's place.
 */
export function expired(backups: readonly KeptBackup[], keep: Retention, now: Date): string[] {
  const latestMs = now.getTime() + aheadMs;
  const believable = backups.filter(({ created_at }) => Date.parse(created_at) <= latestMs);
  const newestFirst = believable.sort((a, b) => (a.id < b.id ? 1 : -1));
  const completed = newestFirst.filter(({ status }) => status === "completed");
  const daily = completed.filter(({ origin }) => origin === "daily");
  const kept = new Set([
    ...newestOfEach(daily, dayOf).slice(0, keep.daily),
    ...newestOfEach(daily, weekOf).slice(0, keep.weekly),
    ...completed.filter(({ origin }) => origin === "manual").slice(0, keep.manual),
    ...completed.filter(({ origin }) => origin === "release").slice(0, releasesKept),
    ...completed.slice(0, 1),
    ...completed.filter((backup) => backup.is_verified).slice(0, 1),
    ...newestFirst.filter((backup) => backup.status === "failed" && isYounger(backup, failedDays, now)),
  ]);
  return newestFirst.filter((backup) => !kept.has(backup)).map(({ id }) => id);
}

export interface SizedBackup extends KeptBackup {
  readonly local_bytes: number;
}

/** Returns the ids of one project's backups to delete for `limitBytes`: automatic first, oldest first, never the newest (verified) one. */
export function beyondLimit(backups: readonly SizedBackup[], limitBytes: number): string[] {
  const newestFirst = backups.filter(({ status }) => status === "completed").sort((a, b) => (a.id < b.id ? 1 : -1));
  const stays = new Set([newestFirst[0], newestFirst.find((backup) => backup.is_verified)]);
  const oldestFirst = newestFirst.toReversed().filter((backup) => backup.local_bytes > 0 && !stays.has(backup));
  const isDaily = ({ origin }: SizedBackup) => origin === "daily";
  let bytes = sum(newestFirst);
  const gone: string[] = [];
  for (const backup of [...oldestFirst.filter(isDaily), ...oldestFirst.filter((each) => !isDaily(each))]) {
    if (bytes <= limitBytes) break;
    bytes -= backup.local_bytes;
    gone.push(backup.id);
  }
  return gone;
}

/** How long the final backups of purged projects are kept, and how much of the local disk those of one organization may take. */
export interface FinalRetention {
  /** 0: for ever. */
  readonly days: number;
  readonly bytes: number;
}

/** Returns the ids of one organization's final backups to delete: too old, or the oldest over the size limit, but never the newest. */
export function endedFinals(
  finals: readonly Pick<SizedBackup, "id" | "created_at" | "local_bytes">[],
  keep: FinalRetention,
  now: Date,
): string[] {
  const newestFirst = [...finals].sort((a, b) => (a.id < b.id ? 1 : -1));
  const isOld = (backup: Pick<KeptBackup, "created_at">) => keep.days > 0 && !isYounger(backup, keep.days, now);
  const isBeyond = (index: number) => index > 0 && sum(newestFirst.slice(0, index + 1)) > keep.bytes;
  return newestFirst.filter((backup, index) => isOld(backup) || isBeyond(index)).map(({ id }) => id);
}

const sum = (backups: readonly Pick<SizedBackup, "local_bytes">[]): number =>
  backups.reduce((bytes, backup) => bytes + backup.local_bytes, 0);

function newestOfEach(newestFirst: readonly KeptBackup[], span: (backup: KeptBackup) => number): KeptBackup[] {
  const found = new Map<number, KeptBackup>();
  for (const backup of newestFirst) if (!found.has(span(backup))) found.set(span(backup), backup);
  return [...found.values()];
}

function dayOf({ created_at }: KeptBackup): number {
  return Math.floor(Date.parse(created_at) / dayMs);
}

// Returns the number of the week, starting on Monday. 1 January 1970 was a Thursday, hence the shift of three days.
function weekOf(backup: KeptBackup): number {
  return Math.floor((dayOf(backup) + 3) / 7);
}

function isYounger({ created_at }: Pick<KeptBackup, "created_at">, days: number, now: Date): boolean {
  return now.getTime() - Date.parse(created_at) < days * dayMs;
}
