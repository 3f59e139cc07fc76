import type { WaitingRun } from "../../features/cron/cron.ts";

/** Runs that wait for a free slot, served round-robin by project, so that one project's many runs do not delay another's. */
export interface CronQueue {
  add(runs: readonly WaitingRun[]): void;
  /** Removes and returns up to `limit` runs, in order within each project, and for each project at most as many as `room` returns. */
  take(limit: number, room: (projectId: string) => number): readonly WaitingRun[];
  /** Returns all waiting runs. */
  waiting(): readonly WaitingRun[];
}

export function createCronQueue(): CronQueue {
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
    add(runs) {
      for (const run of runs) {
        const line = lines.get(run.project_id);
        if (line === undefined) lines.set(run.project_id, [run]);
        else line.push(run);
      }
    },
    take(limit, room) {
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
