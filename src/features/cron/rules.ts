import { createHash } from "node:crypto";
import { latestUntil, nextAfter, parseSchedule, type CronSchedule } from "../../contract/cron-schedule.ts";

/** A missed start is made up for when it is at most this old. Semantics, "Cron". */
export const latestStartMs = 10 * 60_000;

/** What becomes of a job's due minutes, in milliseconds since 1970. */
export interface DuePlan {
  /** The one to run; undefined when it is too long ago. */
  readonly startMs: number | undefined;
  /** Newest first, no more of them than runs are kept. */
  readonly missedMs: readonly number[];
  readonly nextMs: number;
}

/** From when to when a job's due minutes are dealt with, and how many of its runs are kept. */
export interface DueSpan {
  readonly fromMs: number;
  readonly nowMs: number;
  readonly keep: number;
}

/**
 * Deals with every due minute of a span: the latest runs unless it is too old, the earlier ones were missed. Those beyond the newest that
 * are kept are passed over: a row of them would be deleted at once, and ten years of downtime would be five million.
 */
export function planDue(schedule: CronSchedule, { fromMs, nowMs, keep }: DueSpan): DuePlan {
  const due: number[] = [];
  let minute = latestUntil(schedule, nowMs);
  while (minute !== undefined && minute >= fromMs && due.length < keep) {
    due.push(minute);
    minute = latestUntil(schedule, minute - 1);
  }
  const [latest, ...earlier] = due;
  const nextMs = nextAfter(schedule, nowMs);
  if (latest === undefined || nowMs - latest > latestStartMs) return { startMs: undefined, missedMs: due, nextMs };
  return { startMs: latest, missedMs: earlier, nextMs };
}

/** The schedule of a stored job. Throws for a text that was never valid. */
export function storedSchedule(text: string): CronSchedule {
  const parsed = parseSchedule(text);
  if ("refused" in parsed) throw new Error(`a stored cron schedule is not valid: ${parsed.refused}`);
  return parsed;
}

/** A line of an imported file. */
export interface ImportedCron {
  readonly path: string;
  readonly schedule: string;
}

/** A job that an import makes, changes or finds as it ought to be. */
export interface NamedCron extends ImportedCron {
  readonly name: string;
}

/**
 * Names the lines of an import. A line that a job already has exactly keeps that job; else it gets the name of its path, or that
 * name with a short hash where it is taken by a job of another path or by another line.
 */
export function nameImports(lines: readonly ImportedCron[], existing: readonly NamedCron[]): readonly NamedCron[] {
  const jobs = new Map(existing.map((job) => [job.name, job]));
  const byLine = new Map(existing.toReversed().map((job) => [lineOf(job), job.name]));
  const distinct = [...new Map(lines.map((line) => [lineOf(line), line])).values()];
  const taken = new Set(distinct.flatMap((line) => byLine.get(lineOf(line)) ?? []));
  return distinct.map((line) => {
    const name = byLine.get(lineOf(line)) ?? freeName(line, taken, jobs);
    taken.add(name);
    return { ...line, name };
  });
}

function freeName(line: ImportedCron, taken: ReadonlySet<string>, jobs: ReadonlyMap<string, NamedCron>): string {
  const plain = nameOfPath(line.path);
  const owner = jobs.get(plain);
  if (!taken.has(plain) && (owner === undefined || owner.path === line.path)) return plain;
  return `${plain}-${createHash("sha256").update(lineOf(line)).digest("hex").slice(0, 8)}`;
}

// Room for a hyphen and the hash within the 64 characters of a name.
const nameCharacters = 55;

function nameOfPath(path: string): string {
  const words = path.replaceAll(/[^A-Za-z0-9._-]+/g, "-").replace(/^[^A-Za-z0-9]+/, "");
  return words.slice(0, nameCharacters).replace(/-+$/, "") || "root";
}

function lineOf({ path, schedule }: ImportedCron): string {
  return `${schedule} ${path}`;
}

/** A place in a list of runs. */
export interface RunCursor {
  readonly scheduled_at: string;
  readonly id: string;
}

/** A place in a list of runs as text. */
export function formatCursor({ scheduled_at, id }: RunCursor): string {
  return `${scheduled_at}_${id}`;
}

/** The place that a cursor's text names; undefined for a text that is no such cursor. */
export function parseCursor(text: string): RunCursor | undefined {
  const found = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)_(run_[0-9a-z]{1,40})$/.exec(text);
  const at = found?.[1] ?? "";
  return found && !Number.isNaN(Date.parse(at)) ? { scheduled_at: at, id: found[2] as string } : undefined;
}
