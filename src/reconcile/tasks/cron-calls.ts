import { setTimeout as sleep } from "node:timers/promises";
import {
  finishRuns,
  releaseRuns,
  renewRuns,
  startRuns,
  type RunEnd,
  type StartedRun,
  type WaitingRun,
} from "../../features/cron/cron.ts";
import type { World } from "../world.ts";
import { createCronCaller } from "./cron-caller.ts";
import { createCronQueue } from "./cron-queue.ts";

/** The runs of this scheduler, from their taking to their end. */
export interface CronCalls {
  /** Runs whose lease this scheduler holds; they are called as soon as there is room. */
  add(runs: readonly WaitingRun[]): void;
  /** Keeps the leases, and tries again what a fault of the database left undone. */
  tend(): Promise<void>;
  /** Starts nothing more, gives waiting runs back, waits for those under way for a moment, and writes their ends down. */
  settle(): Promise<void>;
  counts(): { readonly waiting: number; readonly running: number };
}

const atOnce = 500;
const settleMs = 5000;
const gatherMs = 25;

/** Makes the place where runs are called, at most so many at once as the settings say, altogether and of one project. */
export function createCronCalls(world: World): CronCalls {
  const { db, owner, settings, clock, log } = world;
  const queue = createCronQueue();
  const caller = createCronCaller(world);
  // Called, and not yet written down as ended; of these only the ones in `perProject` take a place.
  const running = new Map<string, Promise<void>>();
  let calling = 0;
  const perProject = new Map<string, number>();
  const stopping = new AbortController();
  const ends: RunEnd[] = [];
  let starting = false;
  let writing: Promise<void> | undefined;
  let closed = false;

  function count(projectId: string, change: 1 | -1): void {
    calling += change;
    const left = (perProject.get(projectId) ?? 0) + change;
    if (left > 0) perProject.set(projectId, left);
    else perProject.delete(projectId);
  }

  async function pump(): Promise<void> {
    if (starting) return;
    starting = true;
    try {
      while (!closed) {
        const free = Math.min(atOnce, settings.cron.concurrent - calling);
        const batch = queue.take(
          free,
          (projectId) => settings.cron.concurrentPerProject - (perProject.get(projectId) ?? 0),
        );
        if (batch.length === 0) break;
        await start(batch);
      }
    } finally {
      starting = false;
    }
  }

  async function start(batch: readonly WaitingRun[]): Promise<void> {
    try {
      await caller.prepare([...new Set(batch.map(({ project_id }) => project_id))]);
      const started = await startRuns(
        db,
        owner,
        clock.now(),
        batch.map(({ id }) => id),
      );
      for (const run of started) if (run.obstacle === null) call(run);
    } catch (error) {
      // Those that were marked after all are not called: their leases run out, and what they did is unknown.
      queue.add(batch);
      throw error;
    }
  }

  function call(run: StartedRun): void {
    count(run.project_id, 1);
    const work = caller.call(run, stopping.signal).then((end) => {
      count(run.project_id, -1);
      ends.push(end);
      write();
      attempt();
    });
    running.set(run.id, work);
  }

  function attempt(): void {
    pump().catch((error: unknown) =>
      log.error({ err: error }, "cron runs could not be started; it will be tried again"),
    );
  }

  function write(): void {
    writing ??= writeAll()
      .catch((error: unknown) =>
        log.error({ err: error }, "the ends of cron runs could not be written; it will be tried again"),
      )
      .finally(() => (writing = undefined));
  }

  async function writeAll(): Promise<void> {
    // Ends come in crowds, and one statement for many costs little more than for one.
    await sleep(gatherMs);
    while (ends.length > 0) {
      const batch = ends.slice(0, atOnce);
      await finishRuns(db, owner, batch);
      ends.splice(0, batch.length);
      for (const { id } of batch) running.delete(id);
    }
  }

  return {
    add(runs) {
      queue.add(runs);
      attempt();
    },
    async tend() {
      await renewRuns(db, owner, [...running.keys(), ...queue.waiting().map(({ id }) => id)]);
      if (ends.length > 0) write();
      attempt();
    },
    async settle() {
      closed = true;
      const timer = setTimeout(() => stopping.abort(), settleMs);
      await releaseRuns(
        db,
        owner,
        queue.waiting().map(({ id }) => id),
      );
      await Promise.all(running.values());
      clearTimeout(timer);
      write();
      await writing;
    },
    counts: () => ({ waiting: queue.waiting().length, running: running.size }),
  };
}
