import type { WaitingRun } from "../../features/cron/cron.ts";

/** Runs that wait for a free place, served project by project, so that one project's crowd does not delay another's run. */
export interface CronQueue {
  add(runs: readonly WaitingRun[]): void;
  /** Takes up to `limit` runs, each project's in their order, of no project more than `room` says. */
  take(limit: number, room: (projectId: string) => number): readonly WaitingRun[];
  /** Everything that still waits. */
  waiting(): readonly WaitingRun[];
}

/** Makes an empty queue. */
export function createCronQueue(): CronQueue {
  // A Map keeps its order of insertion: a project that was served goes to its end.
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
