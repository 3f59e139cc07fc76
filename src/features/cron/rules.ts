import { createHash } from "node:crypto";
import { latestUntil, nextAfter, parseSchedule, type CronSchedule } from "../../contract/cron-schedule.ts";

/** A missed run is still started when it is at most this late. Semantics, "Cron". */
export const latestStartMs = 10 * 60_000;

/** How a job's due minutes are handled; times in milliseconds since 1970. */
export interface DuePlan {
  /** The minute to run; undefined when it is too long ago. */
  readonly startMs: number | undefined;
  /** Newest first, at most as many as runs are kept. */
  readonly missedMs: readonly number[];
  readonly nextMs: number;
}

/** The time span whose due minutes are handled, and how many of the job's runs are kept. */
export interface DueSpan {
  readonly fromMs: number;
  readonly nowMs: number;
  /** At most this many minutes get a row. */
  readonly keep: number;
}

/**
 * Plans every due minute of a span: the latest runs unless it is too old, and the earlier ones count as missed. Only the newest `keep`
 * minutes get a row: more would be deleted at once, and ten years of downtime would need five million.
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

/** Parses the schedule of a stored job. Throws if it is not valid. */
export function storedSchedule(text: string): CronSchedule {
  const parsed = parseSchedule(text);
  if ("refused" in parsed) throw new Error(`a stored cron schedule is not valid: ${parsed.refused}`);
  return parsed;
}

/** A line of an imported file, in the form of a job's row. */
export interface ImportedCron {
  /** Empty if it runs a command. */
  readonly path: string;
  readonly command: string | null;
  readonly schedule: string;
}

/** A job that an import creates, changes or leaves as it is. */
export interface NamedCron extends ImportedCron {
  readonly name: string;
}

/**
 * Names the lines of an import. A line that matches an existing job exactly keeps that job's name. Any other line gets a name from its
 * path or command, with a short hash if that name belongs to a job with other work or to another line.
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
  const plain = nameOfWork(line.command ?? line.path);
  const owner = jobs.get(plain);
  if (!taken.has(plain) && (owner === undefined || (owner.path === line.path && owner.command === line.command)))
    return plain;
  return `${plain}-${createHash("sha256").update(lineOf(line)).digest("hex").slice(0, 8)}`;
}

// Leaves space for a hyphen and the hash within the 64 characters of a name.
const nameCharacters = 55;

function nameOfWork(work: string): string {
  const words = work.replaceAll(/[^A-Za-z0-9._-]+/g, "-").replace(/^[^A-Za-z0-9]+/, "");
  return words.slice(0, nameCharacters).replace(/-+$/, "") || "root";
}

function lineOf({ path, command, schedule }: ImportedCron): string {
  // No path contains a space.
  return command === null ? `${schedule} ${path}` : `${schedule}  ${command}`;
}

export interface RunCursor {
  readonly scheduled_at: string;
  readonly id: string;
}

export function formatCursor({ scheduled_at, id }: RunCursor): string {
  return `${scheduled_at}_${id}`;
}

export function parseCursor(text: string): RunCursor | undefined {
  const found = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)_(run_[0-9a-z]{1,40})$/.exec(text);
  const at = found?.[1] ?? "";
  return found && !Number.isNaN(Date.parse(at)) ? { scheduled_at: at, id: found[2] as string } : undefined;
}
