import type { Job } from "./plan-jobs.ts";

/** Runs jobs in order within the capacity; lighter ones overtake. Those that need the whole capacity run last, one at a time. */
export async function runJobs(
  jobs: readonly Job[],
  capacity: number,
  runOne: (job: Job) => Promise<void>,
): Promise<void> {
  const waiting = [...jobs];
  const running = new Set<Promise<void>>();
  let free = capacity;
  const startNext = (): boolean => {
    const index = waiting.findIndex(({ weight }) => weight <= free);
    const [job] = index < 0 ? [] : waiting.splice(index, 1);
    if (job === undefined) return false;
    free -= job.weight;
    const run = runOne(job).finally(() => {
      free += job.weight;
      running.delete(run);
    });
    running.add(run);
    return true;
  };
  while (waiting.length > 0 || running.size > 0) {
    while (startNext());
    await Promise.race(running);
  }
}
