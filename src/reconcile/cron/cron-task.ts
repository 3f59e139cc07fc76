import { setImmediate as turn } from "node:timers/promises";
import {
  adoptRuns,
  claimDue,
  closeLostRuns,
  correctNextMinutes,
  nextMinute,
  pruneRuns,
} from "../../features/cron/cron.ts";
import { releaseDeadLeases } from "../../store/leases.ts";
import type { Task } from "../driver.ts";
import type { Platform } from "../platform.ts";
import { CronCalls } from "./cron-calls.ts";

const batch = 500;
const periodMs = 1000;
// Another scheduler has what is due under its hands.
const heldMs = 20;
// Counting a job's runs at every run would cost more than the few that are too many.
const prunedShare = 1 / 20;
// Clocks are corrected by fractions of a second all the time.
const setBackMs = 1000;

/** Runs cron jobs at their minutes. Any number of schedulers may work on one database. */
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
  #tendedAt = -Infinity;

  constructor(platform: Platform) {
    this.#platform = platform;
    this.calls = new CronCalls(platform);
  }

  /** Looks after the clock and the leases, about once a second: at the full minute there is no time for it. */
  async reconcileSchedules(now: Date): Promise<void> {
    const { db, log } = this.#platform;
    if (now.getTime() < this.#lastMs - setBackMs) await correctNextMinutes(db, now);
    this.#lastMs = now.getTime();
    if (performance.now() - this.#tendedAt < periodMs) return;
    this.#tendedAt = performance.now();
    // Its own first: after a suspend of the machine their leases have run out too.
    await this.calls.reconcileCalls();
    await releaseDeadLeases(db, "cron_run");
    const lost = await closeLostRuns(db, now);
    if (lost > 0) log.warn({ runs: lost }, "closed cron runs whose scheduler ended in the middle");
  }

  /** Takes everything that is due, and says how many jobs were. */
  async claim(now: Date, signal: AbortSignal): Promise<number> {
    const { db, owner, settings } = this.#platform;
    for (let sum = 0; ; await turn()) {
      const claiming = { owner, now, limit: batch, keep: settings.cron.runsKept };
      const { jobIds, waiting, more } = await claimDue(db, claiming);
      this.calls.add(waiting);
      this.#notice(jobIds);
      sum += jobIds.length;
      if (!more || signal.aborted) return sum;
    }
  }

  /** Takes runs that were asked for, and those that a dead scheduler had not begun. */
  async adopt(): Promise<void> {
    const { db, owner } = this.#platform;
    for (let more = true; more;) {
      const adopted = await adoptRuns(db, owner, batch);
      this.calls.add(adopted);
      this.#notice(adopted.map(({ job_id }) => job_id));
      more = adopted.length === batch;
    }
  }

  async prune(): Promise<void> {
    const jobs = [...this.#crowded].slice(0, batch);
    if (jobs.length === 0) return;
    for (const id of jobs) this.#crowded.delete(id);
    await pruneRuns(this.#platform.db, jobs, this.#platform.settings.cron.runsKept);
  }

  /** How long there is nothing to do. */
  async pauseMs(): Promise<number> {
    const next = await nextMinute(this.#platform.db);
    if (next === null) return periodMs;
    const untilMs = Date.parse(next) - this.#platform.clock.now().getTime();
    return untilMs > 0 ? untilMs : heldMs;
  }

  #notice(jobIds: readonly string[]): void {
    for (const id of jobIds) if (Math.random() < prunedShare) this.#crowded.add(id);
  }
}
