import { setImmediate as turn } from "node:timers/promises";
import {
  adoptRuns,
  claimDue,
  closeLostRuns,
  correctNextMinutes,
  nextMinute,
  pruneRuns
} from "../../features/cron/cron.ts";
import { releaseDeadLeases } from "../../store/leases.ts";
import type { Task, TaskReport } from "../driver.ts";
import type { World } from "../world.ts";
import { createCronCalls } from "./cron-calls.ts";

const batch = 500;
const periodMs = 1000;
// Counting a job's runs at every run would cost more than the few that are too many.
const prunedShare = 1 / 20;
// Another scheduler has what is due under its hands.
const heldMs = 20;
// Clocks are corrected by fractions of a second all the time.
const setBackMs = 1000;

/** Runs cron jobs at their minutes. Any number of schedulers may work on one database. */
export function cronTask(world: World): Task {
  const { db, clock, owner } = world;
  const calls = createCronCalls(world);
  const crowded = new Set<string>();
  let lastMs = Infinity;
  let tendedAt = -Infinity;

  async function tend(now: Date): Promise<void> {
    if (now.getTime() < lastMs - setBackMs) await correctNextMinutes(db, now);
    lastMs = now.getTime();
    if (performance.now() - tendedAt < periodMs) return;
    tendedAt = performance.now();
    await releaseDeadLeases(db, "cron_run");
    const lost = await closeLostRuns(db, now);
    if (lost > 0) world.log.warn({ runs: lost }, "closed cron runs whose scheduler ended in the middle");
    await calls.tend();
  }

  async function claim(now: Date, signal: AbortSignal): Promise<number> {
    for (let sum = 0; ; await turn()) {
      const { jobIds, waiting } = await claimDue(db, { owner, now, limit: batch });
      calls.add(waiting);
      notice(jobIds);
      sum += jobIds.length;
      if (jobIds.length < batch || signal.aborted) return sum;
    }
  }

  async function adopt(): Promise<void> {
    for (let adopted = await adoptRuns(db, owner, batch); adopted.length > 0;) {
      calls.add(adopted);
      notice(adopted.map(({ job_id }) => job_id));
      adopted = adopted.length < batch ? [] : await adoptRuns(db, owner, batch);
    }
  }

  function notice(jobIds: readonly string[]): void {
    for (const id of jobIds) if (Math.random() < prunedShare) crowded.add(id);
  }

  async function prune(): Promise<void> {
    const jobs = [...crowded].slice(0, batch);
    for (const id of jobs) crowded.delete(id);
    if (jobs.length > 0) await pruneRuns(db, jobs, world.settings.cron.runsKept);
  }

  return {
    name: "cron",
    periodMs,
    topics: ["cron"],
    async run(signal): Promise<TaskReport> {
      const now = clock.now();
      await tend(now);
      const due = await claim(now, signal);
      await adopt();
      if (due === 0) await prune();
      const next = await nextMinute(db);
      const untilMs = next === null ? periodMs : Date.parse(next) - clock.now().getTime();
      const { waiting, running } = calls.counts();
      return { detail: `${running} running, ${waiting} waiting`, againMs: untilMs > 0 ? untilMs : heldMs };
    },
    settle: () => calls.settle(),
  };
}
