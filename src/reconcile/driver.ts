import type { Log } from "../kit/log.ts";
import { createSignal } from "../store/signal.ts";
import type { Wakeups } from "../store/wakeups.ts";
import type { Task } from "./platform.ts";

export interface TaskStatus {
  readonly name: string;
  readonly period_ms: number;
  readonly last_run_at: string | null;
  readonly last_ok_at: string | null;
  readonly detail: string;
  readonly failing: boolean;
}

export type Driver = ReturnType<typeof createDriver>;

/**
 * Runs each task in its own loop, on wake-ups and at least once per period, never concurrently with itself. Faults are logged, and the loop
 * continues.
 */
export function createDriver(options: { tasks: readonly Task[]; wakeups: Wakeups; log: Log }) {
  const stopping = new AbortController();
  const loops = options.tasks.map((task) => createLoop(task, options, stopping.signal));
  return {
    /** Starts all tasks; resolves once each has run once or is stopped. */
    async start() {
      await Promise.all(loops.map((loop) => loop.start()));
    },
    /** Stops all tasks: starts no new runs, and waits for running ones. */
    async stop() {
      stopping.abort(new Error("the platform is stopping"));
      await Promise.all(loops.map((loop) => loop.ended()));
    },
    status: () => loops.map((loop) => loop.status()),
    wake(name: string) {
      loops.find((loop) => loop.status().name === name)?.wake();
    },
  };
}

function createLoop(task: Task, options: { wakeups: Wakeups; log: Log }, signal: AbortSignal) {
  const log = options.log.child({ task: task.name });
  const status = {
    name: task.name,
    period_ms: task.periodMs,
    last_run_at: null as string | null,
    last_ok_at: null as string | null,
    detail: "not run yet",
    failing: false,
  };
  const wakeup = createSignal(options.wakeups, task.topics);
  let ended: Promise<void> = Promise.resolve();

  async function once(): Promise<number> {
    status.last_run_at = new Date().toISOString();
    try {
      const report = await task.run(signal);
      Object.assign(status, { last_ok_at: new Date().toISOString(), detail: report.detail, failing: false });
      return Math.min(report.againMs ?? task.periodMs, task.periodMs);
    } catch (error) {
      if (!signal.aborted) log.error({ err: error }, "the task failed; it will run again");
      Object.assign(status, { detail: error instanceof Error ? error.message : String(error), failing: true });
      return Math.min(1000, task.periodMs);
    }
  }

  async function loop(first: () => void): Promise<void> {
    while (!signal.aborted) {
      const pauseMs = await once();
      first();
      await wakeup.wait(pauseMs, signal);
    }
    first();
    wakeup.stop();
    await task.settle?.();
  }

  return {
    start: () => new Promise<void>((first) => void (ended = loop(first))),
    ended: () => ended,
    status: () => ({ ...status }),
    wake: () => wakeup.notify(),
  };
}
