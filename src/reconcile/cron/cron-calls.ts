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
import type { Platform } from "../platform.ts";
import { createCronCaller, type CronCaller } from "./cron-caller.ts";

const atOnce = 500;
const settleMs = 5000;
// Many runs end at the same time; one statement for many costs little more than one for a single run.
const gatherMs = 25;

/** The runs of this scheduler, from claim to end. Limits concurrent calls, in total and per project, as the settings say. */
export class CronCalls {
  readonly #platform: Platform;
  readonly #caller: CronCaller;
  readonly #queue = createCronQueue();
  /** Called, but not yet stored as ended. */
  readonly #open = new Map<string, Promise<void>>();
  readonly #ends: RunEnd[] = [];
  readonly #callsOf = new Map<string, number>();
  #calls = 0;
  readonly #stopping = new AbortController();
  #starting = false;
  #writing: Promise<void> | undefined;
  #closed = false;

  constructor(platform: Platform) {
    this.#platform = platform;
    this.#caller = createCronCaller(platform);
  }

  /** Adds runs whose lease this scheduler holds; each is called as soon as a slot is free. */
  add(runs: readonly WaitingRun[]): void {
    this.#queue.add(runs);
    this.#startSoon();
  }

  /** Renews the leases and retries what a database error left undone. */
  async reconcileCalls(): Promise<void> {
    await renewRuns(this.#platform.db, this.#platform.owner, [...this.#open.keys(), ...this.#waiting()]);
    if (this.#ends.length > 0) this.#writeSoon();
    this.#startSoon();
  }

  /** Starts no more calls, releases waiting runs, waits a moment for running ones, and stores their ends. */
  async settle(): Promise<void> {
    this.#closed = true;
    const timer = setTimeout(() => this.#stopping.abort(), settleMs);
    await releaseRuns(this.#platform.db, this.#platform.owner, this.#waiting());
    await Promise.all(this.#open.values());
    clearTimeout(timer);
    this.#writeSoon();
    await this.#writing;
  }

  counts(): { readonly waiting: number; readonly running: number } {
    return { waiting: this.#waiting().length, running: this.#calls };
  }

  #waiting(): string[] {
    return this.#queue.waiting().map(({ id }) => id);
  }

  #startSoon(): void {
    this.#startAll().catch((error: unknown) => {
      this.#platform.log.error({ err: error }, "cron runs could not be started; it will be tried again");
    });
  }

  async #startAll(): Promise<void> {
    if (this.#starting) return;
    this.#starting = true;
    const { concurrent, concurrentPerProject } = this.#platform.settings.cron;
    const room = (projectId: string) => concurrentPerProject - (this.#callsOf.get(projectId) ?? 0);
    try {
      while (!this.#closed) {
        const batch = this.#queue.take(Math.min(atOnce, concurrent - this.#calls), room);
        if (batch.length === 0) break;
        await this.#start(batch);
      }
    } finally {
      this.#starting = false;
    }
  }

  async #start(batch: readonly WaitingRun[]): Promise<void> {
    const { db, owner, clock } = this.#platform;
    const ids = batch.map(({ id }) => id);
    try {
      await this.#caller.prepare([...new Set(batch.map(({ project_id }) => project_id))]);
      const started = await startRuns(db, owner, clock.now(), ids);
      for (const run of started) if (run.obstacle === null) this.#call(run);
    } catch (error) {
      // Runs that were marked as called despite the error are not called: their leases expire, and their outcome is unknown.
      this.#queue.add(batch);
      throw error;
    }
  }

  #call(run: StartedRun): void {
    this.#count(run.project_id, 1);
    const work = this.#caller.call(run, this.#stopping.signal).then((end) => {
      this.#count(run.project_id, -1);
      this.#ends.push(end);
      this.#writeSoon();
      this.#startSoon();
    });
    this.#open.set(run.id, work);
  }

  #count(projectId: string, change: 1 | -1): void {
    this.#calls += change;
    const left = (this.#callsOf.get(projectId) ?? 0) + change;
    if (left > 0) this.#callsOf.set(projectId, left);
    else this.#callsOf.delete(projectId);
  }

  #writeSoon(): void {
    this.#writing ??= this.#writeAll()
      .catch((error: unknown) => {
        this.#platform.log.error(
          { err: error },
          "the results of cron runs could not be stored; it will be tried again",
        );
      })
      .finally(() => (this.#writing = undefined));
  }

  async #writeAll(): Promise<void> {
    await sleep(gatherMs);
    while (this.#ends.length > 0) {
      const batch = this.#ends.slice(0, atOnce);
      await finishRuns(this.#platform.db, this.#platform.owner, batch);
      this.#ends.splice(0, batch.length);
      for (const { id } of batch) this.#open.delete(id);
    }
  }
}

/** Holds runs that wait for a free slot, served round-robin by project, so that one project's many runs do not delay another's. */
function createCronQueue() {
  // A Map keeps insertion order: a project that was served is reinserted at the end.
  const lines = new Map<string, WaitingRun[]>();
  function takeOne(room: (projectId: string) => number, taken: ReadonlyMap<string, number>): WaitingRun | undefined {
    for (const [projectId, line] of lines) {
      if (room(projectId) <= (taken.get(projectId) ?? 0)) continue;
      const run = line.shift();
      lines.delete(projectId);
      if (line.length > 0) lines.set(projectId, line);
      return run;
    }
    return undefined;
  }
  return {
    add(runs: readonly WaitingRun[]) {
      for (const run of runs) {
        const line = lines.get(run.project_id);
        if (line === undefined) lines.set(run.project_id, [run]);
        else line.push(run);
      }
    },
    /** Removes and returns up to `limit` runs, in order within each project, and for each project at most as many as `room` returns. */
    take(limit: number, room: (projectId: string) => number) {
      const runs: WaitingRun[] = [];
      const taken = new Map<string, number>();
      while (runs.length < limit) {
        const run = takeOne(room, taken);
        if (run === undefined) break;
        runs.push(run);
        taken.set(run.project_id, (taken.get(run.project_id) ?? 0) + 1);
      }
      return runs;
    },
    waiting: () => [...lines.values()].flat(),
  };
}
