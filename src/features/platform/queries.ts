import { sql, type RawBuilder } from "kysely";
import type { Failure } from "../../ports/failure.ts";
import type { Db, Tx } from "../../store/database.ts";
import type { ProjectKey } from "../projects/projects.ts";

export interface MachineDescription {
  readonly version: string;
  readonly cpus: number;
  readonly memory_bytes: number;
  readonly runtime: string;
  readonly network: string;
  readonly isolation: readonly string[];
  readonly missing: readonly { readonly part: string; readonly effect: string; readonly remedy: string }[];
  readonly disk: {
    readonly total_bytes: number;
    readonly available_bytes: number;
    /** Use of the data folder by kind of data; null until it was measured. */
    readonly used_bytes: Readonly<Record<string, number>> | null;
    readonly measured_at: string | null;
  };
  /** The resource limits of one replica. */
  readonly replica: { readonly memory_bytes: number; readonly cpus: number };
}

/** Stores a machine's description, and that its control plane is alive. */
export async function saveMachine(
  db: Db,
  machine: { readonly name: string; readonly started_at: Date; readonly description: MachineDescription },
): Promise<void> {
  const { name, started_at } = machine;
  const changing = {
    description: JSON.stringify(machine.description),
    started_at,
    seen_at: sql<string>`clock_timestamp()`,
  };
  await db
    .insertInto("machine")
    .values({ name, ...changing })
    .onConflict((on) => on.column("name").doUpdateSet(changing))
    .execute();
}

export async function describedMachine(db: Db, name: string): Promise<MachineDescription | undefined> {
  const row = await db.selectFrom("machine").select("description").where("name", "=", name).executeTakeFirst();
  return row?.description as unknown as MachineDescription | undefined;
}

export async function listMachines(db: Db | Tx) {
  const rows = await db
    .selectFrom("machine")
    .select(["name", "description", "started_at", "seen_at"])
    .orderBy("name")
    .execute();
  return rows.map((row) => ({ ...row, description: row.description as unknown as MachineDescription }));
}

async function one<T>(db: Db | Tx, query: RawBuilder<T>): Promise<T> {
  return (await query.execute(db)).rows[0] as T;
}

export async function countProjects(db: Db | Tx) {
  return one(
    db,
    sql<{
      organizations: number;
      suspended: number;
      projects: number;
      deleted: number;
      serving: number;
      replicas: number;
    }>`
      select (select count(*)::int from organization) as organizations,
        (select count(*)::int from organization where suspended_at is not null) as suspended,
        count(*) filter (where p.deleted_at is null)::int as projects,
        count(*) filter (where p.deleted_at is not null)::int as deleted,
        count(*) filter (where s.serves)::int as serving,
        (select coalesce(sum(t.replicas), 0)::int from deployment d join deployment_process t on t.deployment_id = d.id
          join project p on p.id = d.project_id and p.deleted_at is null join organization o on o.id = p.org_id and o.suspended_at is null
          where d.status = 'active') as replicas
      from project p join organization o on o.id = p.org_id
      cross join lateral (select p.deleted_at is null and o.suspended_at is null
        and exists (select from deployment d where d.project_id = p.id and d.status = 'active') as serves) s
      where p.purged_at is null`,
  );
}

/** Counts the deployments created since midnight, UTC. */
export async function countDeployments(db: Db | Tx) {
  return one(
    db,
    sql<{ total: number; succeeded: number; failed: number; in_progress: number }>`
      select count(*)::int as total, count(*) filter (where activated_at is not null)::int as succeeded,
        count(*) filter (where status = 'failed')::int as failed,
        count(*) filter (where status in ('pending', 'starting'))::int as in_progress
      from deployment where created_at >= date_trunc('day', now())`,
  );
}

/** Counts what belongs to projects: databases, backups, hostnames, cron jobs. */
export async function countBelongings(db: Db | Tx) {
  return one(
    db,
    sql<{
      databases: number;
      ready: number;
      failed: number;
      backups: number;
      backup_bytes: number;
      domains: number;
      serving: number;
      cron_jobs: number;
    }>`select (select count(*)::int from project_database) as databases,
        (select count(*)::int from project_database where status = 'ready') as ready,
        (select count(*)::int from project_database where status = 'failed') as failed,
        (select count(*)::int from backup where status = 'completed' and expired_at is null) as backups,
        (select coalesce(sum(size_bytes), 0)::bigint from backup where status = 'completed') as backup_bytes,
        (select count(*)::int from domain) as domains,
        (select count(*)::int from domain where verified_at is not null) as serving,
        (select count(*)::int from cron_job) as cron_jobs`,
  );
}

const listed = 10;

/** Returns the projects with the most failures in the last 24 hours. */
export async function mostFailing(db: Db | Tx) {
  const { rows } = await sql<{
    organization: string;
    project: string;
    errors: number;
    crashes: number;
    failed_deployments: number;
    failed_cron_runs: number;
  }>`with failures as (
      select project_id, sum(errors)::bigint as errors, 0 as crashes, 0 as deployments, 0 as runs from project_metric
        where bucket_seconds = 3600 and at > now() - interval '24 hours' group by project_id
      union all select project_id, 0, count(*), 0, 0 from activity
        where action in ('replica.crashed', 'replica.out_of_memory') and created_at > now() - interval '24 hours' group by project_id
      union all select project_id, 0, count(*) filter (where failure ->> 'stage' = 'boot'), count(*), 0 from deployment
        where status = 'failed' and created_at > now() - interval '24 hours' group by project_id
      union all select project_id, 0, 0, 0, count(*) from cron_run
        where status in ('failed', 'timeout', 'unknown') and finished_at > now() - interval '24 hours' group by project_id)
    select o.slug as organization, p.slug as project, sum(f.errors)::bigint as errors, sum(f.crashes)::int as crashes,
      sum(f.deployments)::int as failed_deployments, sum(f.runs)::int as failed_cron_runs
    from failures f join project p on p.id = f.project_id join organization o on o.id = p.org_id
    group by o.slug, p.slug
    having sum(f.errors) + sum(f.crashes) + sum(f.deployments) + sum(f.runs) > 0
    order by sum(f.errors) + sum(f.crashes) + sum(f.deployments) + sum(f.runs) desc, o.slug, p.slug limit ${listed}`.execute(
    db,
  );
  return rows;
}

// A mean over fewer requests says nothing.
const fewestRequests = 10;

/** Returns the projects with the longest mean response time in the last 24 hours. */
export async function slowest(db: Db | Tx) {
  const { rows } = await sql<{ organization: string; project: string; requests: number; mean_ms: number }>`
    select o.slug as organization, p.slug as project, sum(m.requests)::bigint as requests,
      round((sum(m.latency_sum_ms) / sum(m.requests))::numeric, 1)::double precision as mean_ms
    from project_metric m join project p on p.id = m.project_id join organization o on o.id = p.org_id
    where m.bucket_seconds = 3600 and m.at > now() - interval '24 hours'
    group by o.slug, p.slug having sum(m.requests) >= ${fewestRequests}
    order by mean_ms desc, o.slug, p.slug limit ${listed}`.execute(db);
  return rows;
}

/** Returns the newest drill of each database: those that did not pass first, then the newest. */
export async function lastDrills(db: Db | Tx) {
  const { rows } = await sql<{
    organization: string;
    project: string;
    status: "running" | "passed" | "mismatch" | "failed";
    created_at: string;
    problem: string | null;
  }>`select o.slug as organization, p.slug as project, d.status, d.created_at, d.problem
    from project_database b join project p on p.id = b.project_id and p.deleted_at is null join organization o on o.id = p.org_id
    cross join lateral (select status, created_at, problem from archive_drill where org_id = p.org_id and project_id = p.id
      order by id desc limit 1) d
    order by d.status in ('passed', 'running'), d.created_at desc limit ${listed}`.execute(db);
  return rows;
}

/** Returns the runtime of the active deployment's image, and its commit. */
export async function activeImage(db: Db | Tx, { org_id, project_id }: ProjectKey) {
  return db
    .selectFrom("deployment")
    .select([sql<string | null>`image ->> 'runtime'`.as("runtime"), "commit"])
    .where(({ and }) => and({ org_id, project_id, status: "active" }))
    .executeTakeFirst();
}

/** Returns the newest build that a move requested, and the state of its deployment. */
export async function newestMove(db: Db | Tx, { org_id, project_id }: ProjectKey) {
  return (
    db
      .selectFrom("build as b")
      .leftJoin("deployment as d", "d.build_id", "b.id")
      .select(["b.id as build_id", "b.created_at", "b.status as build", "d.status as deployment"])
      .select([
        sql<string>`b.runtime`.as("runtime"),
        sql<Failure | null>`b.failure`.as("build_failure"),
        sql<Failure | null>`d.failure`.as("deployment_failure"),
      ])
      .where(({ and }) => and({ "b.org_id": org_id, "b.project_id": project_id }))
      .where("b.runtime", "is not", null)
      // Builds of ready images name a runtime too, but are not redeploys.
      .where("b.origin", "=", "redeploy")
      .orderBy("b.number", "desc")
      .orderBy("d.number", "asc")
      .limit(1)
      .executeTakeFirst()
  );
}

export function projectsNamed(db: Db | Tx, ids: readonly string[]) {
  return db
    .selectFrom("project as p")
    .innerJoin("organization as o", "o.id", "p.org_id")
    .select(["p.org_id", "p.id as project_id", "p.slug", "o.slug as org"])
    .where("p.id", "in", [...ids, ""])
    .orderBy("o.slug")
    .orderBy("p.slug")
    .execute();
}
