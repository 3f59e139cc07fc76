import { setImmediate as turn } from "node:timers/promises";
import * as cron from "../../features/cron/cron.ts";
import { releaseDeadLeases } from "../../store/leases.ts";
import type { Task, Platform } from "../platform.ts";
import { CronCalls } from "./cron-calls.ts";

const batch = 500;
const periodMs = 1000;
// Another scheduler is already claiming what is due; check again after this.
const heldMs = 20;
// Probability with which a run has its job's history pruned: counting after every run would cost more than a few surplus rows.
const prunedShare = 1 / 20;
// A clock that gained more than this on the monotonic one jumped, or the machine slept.
const jumpMs = 60_000;
// Smaller steps back are ignored: clocks are constantly corrected by fractions of a second.
const setBackMs = 1000;

/** Runs cron jobs when they are due. Any number of schedulers may share one database. */
export function cronTask(platform: Platform): Task {
  const scheduler = new Scheduler(platform);
  return {
    name: "cron",
    periodMs,
    topics: ["cron"],
    async run(signal) {
      const now = platform.clock.now();
      await scheduler.reconcileSchedules(now);
      const due = await scheduler.claim(now, signal);
      await scheduler.adopt();
      if (due === 0) await scheduler.prune();
      const { waiting, running } = scheduler.calls.counts();
      return { detail: `${running} running, ${waiting} waiting`, againMs: await scheduler.pauseMs() };
    },
    settle: () => scheduler.calls.settle(),
  };
}

class Scheduler {
  readonly calls: CronCalls;
  readonly #platform: Platform;
  readonly #crowded = new Set<string>();
  #lastMs = Infinity;
  #lastTick = performance.now();
  #jumped = false;
  #tendedAt = -Infinity;

  constructor(platform: Platform) {
    this.#platform = platform;
    this.calls = new CronCalls(platform);
  }

  /** Maintains schedules and leases, about once a second, because it would delay the calls at the full minute. */
  async reconcileSchedules(now: Date): Promise<void> {
    const { db, log } = this.#platform;
    if (now.getTime() < this.#lastMs - setBackMs) await cron.correctNextMinutes(db, now, this.#lastMs !== Infinity);
    const tick = performance.now();
    this.#jumped = now.getTime() - this.#lastMs > tick - this.#lastTick + jumpMs;
    this.#lastMs = now.getTime();
    this.#lastTick = tick;
    if (performance.now() - this.#tendedAt < periodMs) return;
    this.#tendedAt = performance.now();
    // Renew this scheduler's own leases first: after the machine was suspended, they have expired as well.
    await this.calls.reconcileCalls();
    await releaseDeadLeases(db, "cron_run");
    const lost = await cron.closeLostRuns(db, now);
    if (lost > 0) log.warn({ runs: lost }, "closed cron runs that an ended scheduler had left open");
  }

  /** Claims everything that is due; resolves to the number of jobs. */
  async claim(now: Date, signal: AbortSignal): Promise<number> {
    const { db, owner, settings } = this.#platform;
    for (let sum = 0; ; await turn()) {
      const claiming = { owner, now, limit: batch, keep: settings.cron.runsKept, jumped: this.#jumped };
      const { jobIds, waiting, more } = await cron.claimDue(db, claiming);
      this.calls.add(waiting);
      this.#notice(jobIds);
      sum += jobIds.length;
      if (!more || signal.aborted) return sum;
    }
  }

  /** Claims manually requested runs and those that a dead scheduler had not started. */
  async adopt(): Promise<void> {
    const { db, owner } = this.#platform;
    for (let more = true; more;) {
      const adopted = await cron.adoptRuns(db, owner, batch);
      this.calls.add(adopted);
      this.#notice(adopted.map(({ job_id }) => job_id));
      more = adopted.length === batch;
    }
  }

  async prune(): Promise<void> {
    const jobs = [...this.#crowded].slice(0, batch);
    if (jobs.length === 0) return;
    for (const id of jobs) this.#crowded.delete(id);
    await cron.pruneRuns(this.#platform.db, jobs, this.#platform.settings.cron.runsKept);
  }

  /** Returns how long to pause before the next job is due. */
  async pauseMs(): Promise<number> {
    const next = await cron.nextMinute(this.#platform.db);
    if (next === null) return periodMs;
    const untilMs = Date.parse(next) - this.#platform.clock.now().getTime();
    return untilMs > 0 ? untilMs : heldMs;
  }

  #notice(jobIds: readonly string[]): void {
    for (const id of jobIds) if (Math.random() < prunedShare) this.#crowded.add(id);
  }
}
