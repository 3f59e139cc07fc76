import { nextAfter } from "../../contract/cron-schedule.ts";
import { newId } from "../../kit/ids.ts";
import type { Db } from "../../store/database.ts";
import * as queries from "./lifecycle-queries.ts";
import { latestStartMs, planDue, storedSchedule } from "./rules.ts";

export interface Claim {
  /** The due jobs that were handled. */
  readonly jobIds: readonly string[];
  /** Whether more jobs may be due. */
  readonly more: boolean;
  readonly waiting: readonly queries.WaitingRun[];
}

export interface Claiming {
  readonly owner: string;
  readonly now: Date;
  readonly limit: number;
  /** How many runs of each job to keep. */
  readonly keep: number;
  /** The clock jumped ahead, so the minutes in between never came: one row tells of them. */
  readonly jumped?: boolean;
}

// Limits the rows of one transaction: after a downtime each job may need as many rows as it keeps runs, and jobs that are due on time must
// not wait for all of them.
const rowsAtOnce = 10_000;

/** Handles up to `limit` due jobs in one transaction: writes a run for each due minute, under the owner's lease, and advances the jobs. */
export async function claimDue(db: Db, claiming: Claiming): Promise<Claim> {
  const { owner, now, limit } = claiming;
  return db.transaction().execute(async (tx) => {
    const due = await queries.lockDueJobs(tx, now, limit);
    if (due.length === 0) return { jobIds: [], waiting: [], more: false };
    const plans = plansOf(due, claiming);
    const waiting = await queries.insertRuns(
      tx,
      owner,
      now,
      plans.flatMap(({ runs }) => runs),
    );
    await queries.setNextMinutes(
      tx,
      plans.map(({ next }) => next),
    );
    return {
      jobIds: plans.map(({ next }) => next.id),
      waiting,
      more: due.length === limit || plans.length < due.length,
    };
  });
}

type JobPlan = ReturnType<typeof planOf>;

/** Plans jobs one after another until one transaction has enough rows; the remaining jobs stay due. */
function plansOf(due: readonly queries.DueJob[], claiming: Claiming): readonly JobPlan[] {
  const plans: JobPlan[] = [];
  let rows = 0;
  for (const job of due) {
    if (rows >= rowsAtOnce) break;
    const plan = planOf(job, claiming);
    plans.push(plan);
    rows += plan.runs.length;
  }
  return plans;
}

function planOf(job: queries.DueJob, { now, keep: most, jumped = false }: Claiming) {
  // The newest of these minutes may still be called.
  const keep = jumped ? 2 : most;
  const nowMs = now.getTime();
  const span = { fromMs: Date.parse(job.next_run_at), nowMs, keep };
  const { startMs, missedMs, nextMs } = planDue(storedSchedule(job.schedule), span);
  const row = (dueMs: number) => ({ id: newId("run", nowMs), job_id: job.id, scheduled_at: new Date(dueMs) });
  const missed = missedMs
    .slice(0, jumped ? 1 : undefined)
    .map((dueMs) => ({ ...row(dueMs), status: "missed", reason: "too_late" }) as const);
  const started = startMs === undefined ? [] : [{ ...row(startMs), ...startOf(job) }];
  return { runs: [...started, ...missed], next: { id: job.id, next_run_at: new Date(nextMs) } };
}

function startOf({ busy }: queries.DueJob): Pick<queries.NewRun, "status" | "reason"> {
  return busy ? { status: "skipped", reason: "overlap" } : { status: "running", reason: null };
}

const pageSize = 1000;

/**
 * Corrects jobs whose next minute is later than their schedule says, which happens when the clock is set back. Minutes that were called
 * already have rows and do not run twice; rows of minutes to come that were not called are dropped. Minutes that passed while the clock
 * was ahead (`wasAhead`) are due again, unless the job was changed since.
 */
export async function correctNextMinutes(db: Db, now: Date, wasAhead = false): Promise<void> {
  await queries.deleteFutureRuns(db, now);
  for (let afterId = ""; ;) {
    const page = await queries.laterJobs(db, now, { afterId, limit: pageSize });
    const wanted = page.map(({ id, schedule, updated_at }) => {
      const sinceMs = wasAhead ? Math.max(now.getTime() - latestStartMs, Date.parse(updated_at)) : now.getTime();
      const fromMs = Math.min(now.getTime(), sinceMs);
      return { id, next_run_at: new Date(nextAfter(storedSchedule(schedule), fromMs)) };
    });
    const wrong = wanted.filter(
      ({ next_run_at }, index) => next_run_at.getTime() < Date.parse(page[index]?.next_run_at ?? ""),
    );
    if (wrong.length > 0) await queries.advanceNextMinutes(db, wrong);
    if (page.length < pageSize) return;
    afterId = page.at(-1)?.id ?? "";
  }
}
