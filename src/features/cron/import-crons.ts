import { nextAfter } from "../../contract/cron-schedule.ts";
import { limits } from "../../contract/limits.ts";
import { newId } from "../../kit/ids.ts";
import type { Db, Tx } from "../../store/database.ts";
import type { ProjectKey } from "../projects/projects.ts";
import * as queries from "./queries.ts";
import { nameImports, storedSchedule, type ImportedCron, type NamedCron } from "./rules.ts";

interface PutContext {
  readonly tx: Tx;
  readonly now: Date;
}
type WantedJob = Pick<queries.NewJob, "name" | "schedule" | "path" | "enabled">;

/** Creates and changes jobs to match a file, all or none; jobs that are not in the file stay unchanged. */
export async function importCrons(
  ctx: PutContext,
  project: ProjectKey,
  crons: readonly ImportedCron[],
): Promise<{ readonly changed: number; readonly jobs: string[] } | "too_many"> {
  const count = await queries.lockJobs(ctx.tx, project);
  const existing = await queries.namedJobs(ctx.tx, project);
  const byName = new Map(existing.map((job) => [job.name, job]));
  const wanted = nameImports(crons, existing);
  const added = wanted.filter(({ name }) => !byName.has(name)).length;
  if (count + added > limits.cron_jobs_per_project) return "too_many";
  const jobs = wanted.map((job) => ({
    ...job,
    id: newId("job", ctx.now.getTime()),
    next_run_at: new Date(nextAfter(storedSchedule(job.schedule), ctx.now.getTime())),
  }));
  const changed = await queries.putJobs(ctx.tx, project, jobs);
  return { changed, jobs: wanted.map(({ name }) => name) };
}

export interface PlannedCron extends NamedCron {
  readonly change: "created" | "changed" | "same";
}

/** Returns what `importCrons` would do with these lines. */
export async function planCrons(
  db: Db,
  project: ProjectKey,
  crons: readonly ImportedCron[],
): Promise<readonly PlannedCron[]> {
  const existing = await queries.namedJobs(db, project);
  const byName = new Map(existing.map((job) => [job.name, job]));
  return nameImports(crons, existing).map((job) => {
    const old = byName.get(job.name);
    const isSame = old?.schedule === job.schedule && old.path === job.path;
    return { ...job, change: old === undefined ? "created" : isSame ? "same" : "changed" };
  });
}

/** Creates the job, or changes it to match. A due minute that no scheduler has handled yet stays due unless the schedule changes. */
export async function put(
  ctx: PutContext,
  project: ProjectKey,
  wanted: WantedJob,
  old: queries.JobRow | undefined,
): Promise<"created" | "changed" | "same"> {
  const { name, schedule, path, enabled } = wanted;
  const next_run_at = new Date(nextAfter(storedSchedule(schedule), ctx.now.getTime()));
  if (old === undefined) {
    await queries.insertJob(ctx.tx, {
      ...project,
      id: newId("job", ctx.now.getTime()),
      name,
      schedule,
      path,
      enabled,
      next_run_at,
    });
    return "created";
  }
  if (old.schedule === schedule && old.path === path && old.enabled === enabled) return "same";
  const change = { schedule, path, enabled, ...(old.schedule === schedule ? {} : { next_run_at }) };
  await queries.updateJob(ctx.tx, project, name, change);
  return "changed";
}
