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
type WantedJob = queries.JobValues & { readonly name: string };

/** Creates and changes jobs to match a file, all or none; jobs that are not in the file stay unchanged. */
export async function importCrons(
  ctx: PutContext,
  project: ProjectKey,
  crons: readonly WantedCron[],
): Promise<Imported | "too_many"> {
  const count = await queries.lockJobs(ctx.tx, project);
  const existing = await queries.namedJobs(ctx.tx, project);
  const byName = new Map(existing.map((job) => [job.name, job]));
  const wanted = nameImports(crons.map(lineOf), existing);
  const added = wanted.filter(({ name }) => !byName.has(name)).length;
  if (count + added > limits.cron_jobs_per_project) return "too_many";
  const jobs = wanted.map((job) => ({
    ...job,
    id: newId("job", ctx.now.getTime()),
    next_run_at: new Date(nextAfter(storedSchedule(job.schedule), ctx.now.getTime())),
  }));
  const changed = await queries.putJobs(ctx.tx, project, jobs);
  const hasNewCommand = wanted.some(
    ({ command }) => command !== null && existing.every((job) => job.command !== command),
  );
  return { changed, jobs: wanted.map(({ name }) => name), hasNewCommand };
}

export interface WantedWork {
  readonly path?: string | undefined;
  readonly command?: string | undefined;
}

export function workOf({
  path = "",
  command = null,
}: {
  path?: string | undefined;
  command?: string | null | undefined;
}) {
  return { path, command };
}

type WantedCron = WantedWork & { readonly schedule: string };
const lineOf = ({ schedule, ...work }: WantedCron): ImportedCron => ({ schedule, ...workOf(work) });

interface Imported {
  readonly changed: number;
  readonly jobs: string[];
  /** A command that no job of the project ran before. */
  readonly hasNewCommand: boolean;
}

export interface PlannedCron extends Omit<NamedCron, "path"> {
  readonly path: string | null;
  readonly change: "created" | "changed" | "same";
}

/** Returns what `importCrons` would do with these lines. */
export async function planCrons(
  db: Db,
  project: ProjectKey,
  crons: readonly WantedCron[],
): Promise<readonly PlannedCron[]> {
  const existing = await queries.namedJobs(db, project);
  const byName = new Map(existing.map((job) => [job.name, job]));
  return nameImports(crons.map(lineOf), existing).map((job) => {
    const old = byName.get(job.name);
    const isSame = old?.schedule === job.schedule && old.path === job.path && old.command === job.command;
    return {
      ...job,
      path: job.command === null ? job.path : null,
      change: old === undefined ? "created" : isSame ? "same" : "changed",
    };
  });
}

/** Creates the job, or changes it to match. A due minute that no scheduler has handled yet stays due unless the schedule changes. */
export async function put(
  ctx: PutContext,
  project: ProjectKey,
  wanted: WantedJob,
  old: queries.JobRow | undefined,
): Promise<"created" | "changed" | "same"> {
  const { name, schedule, path, command, enabled } = wanted;
  const next_run_at = new Date(nextAfter(storedSchedule(schedule), ctx.now.getTime()));
  if (old === undefined) {
    await queries.insertJob(ctx.tx, {
      ...project,
      id: newId("job", ctx.now.getTime()),
      name,
      schedule,
      path,
      command,
      enabled,
      next_run_at,
    });
    return "created";
  }
  if (old.schedule === schedule && old.path === path && old.command === command && old.enabled === enabled)
    return "same";
  const change = { schedule, path, command, enabled, ...(old.schedule === schedule ? {} : { next_run_at }) };
  await queries.updateJob(ctx.tx, project, name, change);
  return "changed";
}
