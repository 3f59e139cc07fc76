import type { Page } from "../../kit/page.ts";
import { sql } from "kysely";
import type { Columns, Db, Tx } from "../../store/database.ts";
import { lockProject, type ProjectKey } from "../projects/projects.ts";
import type { RunCursor } from "./rules.ts";

const jobColumns = [
  "cron_job.id",
  "cron_job.name",
  "cron_job.schedule",
  "cron_job.path",
  "cron_job.command",
  "cron_job.previous",
  "cron_job.enabled",
  "cron_job.next_run_at",
  "cron_job.created_at",
  "cron_job.updated_at",
] as const;

const runColumns = [
  "id",
  "trigger",
  "scheduled_at",
  "started_at",
  "finished_at",
  "status",
  "reason",
  "http_status",
  "exit_code",
  "duration_ms",
  "response_excerpt",
] as const;

const jobs = (db: Db | Tx, { org_id, project_id }: ProjectKey) =>
  db
    .selectFrom("cron_job")
    .leftJoinLateral(
      (from) =>
        from
          .selectFrom("cron_run")
          .select(["cron_run.status as last_status", sql<string>`coalesce(started_at, scheduled_at)`.as("last_run_at")])
          .whereRef("cron_run.job_id", "=", "cron_job.id")
          .orderBy("cron_run.scheduled_at", "desc")
          .orderBy("cron_run.id", "desc")
          .limit(1)
          .as("last"),
      (join) => join.onTrue(),
    )
    .select([...jobColumns, "last.last_status", "last.last_run_at"])
    .where("cron_job.org_id", "=", org_id)
    .where("cron_job.project_id", "=", project_id);

/** Returns a page of a project's jobs with the newest run of each, newest job first, and one more. */
export async function listJobs(db: Db | Tx, project: ProjectKey, page: Page<string>) {
  let query = jobs(db, project);
  if (page.cursor !== undefined) query = query.where("cron_job.id", "<", page.cursor);
  return query
    .orderBy("cron_job.id", "desc")
    .limit(page.limit + 1)
    .execute();
}

export async function selectJob(db: Db | Tx, project: ProjectKey, name: string) {
  return jobs(db, project).where("cron_job.name", "=", name).executeTakeFirst();
}

export type JobRow = NonNullable<Awaited<ReturnType<typeof selectJob>>>;

/** Returns the name, schedule and work of every job of the project, oldest first. */
export async function namedJobs(db: Db | Tx, { org_id, project_id }: ProjectKey) {
  return db
    .selectFrom("cron_job")
    .select(["name", "schedule", "path", "command"])
    .where(({ and }) => and({ org_id, project_id }))
    .orderBy("id")
    .execute();
}

/** Locks the project, to serialise changes to its jobs, and returns the number of its jobs. */
export async function lockJobs(tx: Tx, project: ProjectKey): Promise<number> {
  const { org_id, project_id } = project;
  await lockProject(tx, project);
  const { count } = await tx
    .selectFrom("cron_job")
    .select(sql<number>`count(*)`.as("count"))
    .where(({ and }) => and({ org_id, project_id }))
    .executeTakeFirstOrThrow();
  return count;
}

export interface NewJob extends ProjectKey, Columns<"cron_job", "id" | "name" | "schedule" | "command" | "enabled"> {
  /** Empty if it runs a command. */
  readonly path: string;
  readonly next_run_at: Date;
}

export async function insertJob(tx: Tx, job: NewJob): Promise<void> {
  await tx.insertInto("cron_job").values(job).execute();
}

/** Creates these jobs or updates their schedule and work in one statement; not whether they are enabled. Returns how many changed. */
export async function putJobs(
  tx: Tx,
  { org_id, project_id }: ProjectKey,
  jobs: readonly Pick<NewJob, "id" | "name" | "schedule" | "path" | "command" | "next_run_at">[],
): Promise<number> {
  const { rows } =
    await sql`insert into cron_job as j (id, org_id, project_id, name, schedule, path, command, enabled, next_run_at)
    select n.id, ${org_id}, ${project_id}, n.name, n.schedule, n.path, n.command, true, n.next_run_at from jsonb_to_recordset(${JSON.stringify(jobs)}::jsonb)
      as n(id text, name text, schedule text, path text, command text, next_run_at timestamptz)
    on conflict (project_id, name) do update set schedule = excluded.schedule, path = excluded.path, command = excluded.command, updated_at = now(),
      previous = ${replaced("j")},
      next_run_at = case when j.schedule = excluded.schedule then j.next_run_at else excluded.next_run_at end
    where (j.schedule, j.path, j.command) is distinct from (excluded.schedule, excluded.path, excluded.command) returning 1`.execute(
      tx,
    );
  return rows.length;
}

export type JobValues = Columns<"cron_job", "schedule" | "path" | "command" | "enabled">;

const replaced = (job: string) => {
  const column = (name: string) => sql.ref(`${job}.${name}`);
  return sql<string>`jsonb_build_object('schedule', ${column("schedule")}, 'path', ${column("path")}, 'command', ${column("command")},
    'enabled', ${column("enabled")})`;
};

/** The properties that a change may set; `next_run_at` only if the schedule changed. */
export type JobChange = Pick<NewJob, "schedule" | "path" | "command" | "enabled"> &
  Partial<Pick<NewJob, "next_run_at">>;

export async function updateJob(tx: Tx, project: ProjectKey, name: string, change: JobChange): Promise<void> {
  await tx
    .updateTable("cron_job")
    .set({ ...change, previous: replaced("cron_job"), updated_at: sql`now()` })
    .where(({ and }) => and({ org_id: project.org_id, project_id: project.project_id, name }))
    .execute();
}

/** Deletes the job with its runs; returns its id, or undefined when there was none. */
export async function deleteJob(tx: Tx, project: ProjectKey, name: string): Promise<string | undefined> {
  const done = await tx
    .deleteFrom("cron_job")
    .where(({ and }) => and({ org_id: project.org_id, project_id: project.project_id, name }))
    .returning("id")
    .executeTakeFirst();
  return done?.id;
}

/** Locks the job until the transaction ends, so that concurrent requests see each other's runs; returns its id. */
export async function lockJob(tx: Tx, project: ProjectKey, name: string) {
  return tx
    .selectFrom("cron_job")
    .select("id")
    .where(({ and }) => and({ org_id: project.org_id, project_id: project.project_id, name }))
    .forUpdate()
    .executeTakeFirst();
}

/** Returns whether any run of the job is in progress or waiting. */
export async function isRunning(tx: Tx, orgId: string, jobId: string): Promise<boolean> {
  const open = await tx
    .selectFrom("cron_run")
    .select("id")
    .where(({ and }) => and({ org_id: orgId, job_id: jobId, status: "running" }))
    .limit(1)
    .executeTakeFirst();
  return open !== undefined;
}

export interface ManualRun extends ProjectKey {
  readonly id: string;
  readonly job_id: string;
  readonly scheduled_at: Date;
  readonly status: "running" | "skipped";
  readonly reason: "overlap" | null;
  readonly finished_at: Date | null;
}

/** Inserts a run that a request asked for; a scheduler starts it. */
export async function insertManualRun(tx: Tx, run: ManualRun) {
  return tx
    .insertInto("cron_run")
    .values({ ...run, trigger: "manual" })
    .returning(runColumns)
    .executeTakeFirstOrThrow();
}

/** Returns a page of a job's runs, newest first, and one more. */
export async function listRuns(
  db: Db | Tx,
  job: { readonly org_id: string; readonly job_id: string },
  page: Page<RunCursor>,
) {
  let query = db
    .selectFrom("cron_run")
    .select(runColumns)
    .where("org_id", "=", job.org_id)
    .where("job_id", "=", job.job_id);
  if (page.cursor !== undefined) {
    const { scheduled_at, id } = page.cursor;
    query = query.where(sql<boolean>`(scheduled_at, id) < (${scheduled_at}::timestamptz, ${id})`);
  }
  return query
    .orderBy("scheduled_at", "desc")
    .orderBy("id", "desc")
    .limit(page.limit + 1)
    .execute();
}
