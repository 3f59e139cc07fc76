import { sql } from "kysely";
import type { Db } from "../../store/database.ts";
import type { DiskLimits } from "../disk/disk.ts";
import { rebuilder } from "../images/images.ts";

/** The age of a timestamp by the database's clock, in seconds. */
const age = (moment: string) => sql`extract(epoch from clock_timestamp() - ${sql.raw(moment)})::double precision`;

/** A project's name for the operator: organization/project. */
const named = sql`o.slug || '/' || p.slug`;

async function rowsOf<T>(db: Db, query: ReturnType<typeof sql<T>>): Promise<readonly T[]> {
  return (await query.execute(db)).rows;
}

/** Returns the database's time, and the present and maximum number of connections. */
export async function ownDatabase(db: Db) {
  const [row] = await rowsOf(
    db,
    sql<{ now: string; connections: number; most: number }>`select clock_timestamp() as now,
      (select count(*)::int from pg_stat_activity where backend_type = 'client backend') as connections,
      current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int as most`,
  );
  return row as { now: string; connections: number; most: number };
}

export async function lastRouteVersion(db: Db): Promise<number> {
  const [row] = await rowsOf(db, sql<{ last_value: number }>`select last_value from route_version`);
  return row?.last_value ?? 0;
}

/** Returns projects' databases that are not ready; `seconds` is the time since their creation. */
export async function troubledDatabases(db: Db) {
  return rowsOf(
    db,
    sql<{ subject: string; status: "provisioning" | "failed"; seconds: number }>`
      select ${named} as subject, d.status, ${age("d.created_at")} as seconds
      from project_database d join project p on p.id = d.project_id join organization o on o.id = d.org_id
      where d.status <> 'ready' and d.failure->>'code' is distinct from 'part_missing' and p.deleted_at is null and p.preview_of is null order by d.created_at`,
  );
}

/** Returns the databases that should respond, as a map from id to the project's name. */
export async function readyDatabaseNames(db: Db): Promise<ReadonlyMap<string, string>> {
  const rows = await rowsOf(
    db,
    sql<{ id: string; subject: string }>`select d.id, ${named} as subject
      from project_database d join project p on p.id = d.project_id join organization o on o.id = d.org_id where d.status = 'ready'`,
  );
  return new Map(rows.map(({ id, subject }) => [id, subject]));
}

/** Returns projects that may not write because they are over a limit, and those that use more than 90 % of one. */
export async function projectsNearLimits(db: Db, limits: DiskLimits) {
  return rowsOf(
    db,
    sql<{ subject: string; kind: "storage" | "database" | "images"; bytes: number; limit: number; access: string }>`
      select ${named} as subject, kind, bytes, limits as limit, access
      from disk_use u join project p on p.id = u.project_id join organization o on o.id = u.org_id
      cross join lateral (values
        ('storage', u.storage_bytes, coalesce(p.storage_limit_bytes, ${limits.storage_bytes}::bigint), u.storage_access),
        ('database', u.database_bytes, coalesce(p.database_limit_bytes, ${limits.database_bytes}::bigint), u.database_access),
        ('images', u.images_bytes, coalesce(p.images_limit_bytes, ${limits.images_bytes}::bigint), 'open')) as each (kind, bytes, limits, access)
      where p.preview_of is null and (access <> 'open' or bytes > limits * 0.9) order by bytes desc`,
  );
}

/**
 * Returns hostnames with problems: served although their records point elsewhere, checked late, without a valid certificate, or with one
 * that expires soon. Soon means 14 days, or the last quarter of a shorter lifetime; `seconds` is then the time left.
 */
export async function troubledDomains(db: Db) {
  return rowsOf(
    db,
    sql<{ subject: string; kind: "lost" | "late" | "certificate" | "ending"; seconds: number; detail: string | null }>`
      select hostname as subject, 'lost' as kind, ${age("lost_at")} as seconds, null as detail
      from domain where verified_at is not null and lost_at is not null
      union all
      select hostname, 'late', ${age("next_check_at")}, null from domain where next_check_at < clock_timestamp() - interval '10 minutes'
      union all
      select hostname, 'certificate', ${age("created_at")}, detail from certificate
        where wanted and (status = 'failed' or not_after is not null) and coalesce(not_after <= now(), true)
      union all
      select hostname, 'ending', extract(epoch from not_after - clock_timestamp())::float8, detail from certificate
        where wanted and not_after > now() and not_after - now() < least(interval '14 days', (not_after - not_before) / 4)
      order by 1`,
  );
}

/** Counts the served hostnames and the valid certificates. */
export async function countDomains(db: Db) {
  const [row] = await rowsOf(
    db,
    sql<{ served: number; certificates: number }>`select count(*) filter (where verified_at is not null)::int as served,
      (select count(*)::int from certificate where wanted and not_after > now()) as certificates from domain`,
  );
  return row as { served: number; certificates: number };
}

/** Returns, for each project with a database, the age of its newest completed backup and the result of its last verification. */
export async function backupAges(db: Db) {
  return rowsOf(
    db,
    sql<{ subject: string; database_seconds: number; backup_seconds: number | null; verification: string | null }>`
      select ${named} as subject, ${age("coalesce(d.ready_at, d.created_at)")} as database_seconds,
        ${age("last.created_at")} as backup_seconds, last.verification
      from project_database d
      join project p on p.id = d.project_id and p.deleted_at is null and p.preview_of is null
      join organization o on o.id = d.org_id and o.suspended_at is null
      left join lateral (select b.created_at, b.verification from backup b where b.org_id = d.org_id and b.project_id = d.project_id
        and b.status = 'completed' and b.expired_at is null order by b.id desc limit 1) last on true
      where d.status = 'ready' order by last.created_at nulls first`,
  );
}

/** Returns how late the scheduler is: the longest overdue minute without a run, and the longest wait of a run for its call. */
export async function cronLateness(db: Db) {
  const [row] = await rowsOf(
    db,
    sql<{ jobs: number; due_seconds: number | null; waiting_seconds: number | null }>`
      select (select count(*)::int from cron_job) as jobs,
        (select ${age("min(next_run_at)")} from cron_job where next_run_at <= clock_timestamp()) as due_seconds,
        (select ${age("min(scheduled_at)")} from cron_run where status = 'running' and started_at is null) as waiting_seconds`,
  );
  return row as { jobs: number; due_seconds: number | null; waiting_seconds: number | null };
}

/** Returns builds and deployments that have not ended, with their age and the time since their worker's lease expired. */
export async function openWork(db: Db) {
  return rowsOf(
    db,
    sql<{
      subject: string;
      kind: "build" | "deployment";
      number: number;
      is_running: boolean;
      seconds: number;
      /** Since its worker's lease expired; negative while the lease is valid, null if there never was one. */
      abandoned_seconds: number | null;
    }>`
      select ${named} as subject, 'build' as kind, b.number, b.status = 'running' as is_running,
        ${age("coalesce(b.started_at, b.created_at)")} as seconds, ${age("b.lease_until")} as abandoned_seconds
      from build b join project p on p.id = b.project_id join organization o on o.id = b.org_id where b.status in ('queued', 'running')
      union all
      select ${named}, 'deployment', d.number, d.status = 'starting', ${age("d.created_at")}, ${age("d.lease_until")}
      from deployment d join project p on p.id = d.project_id join organization o on o.id = d.org_id where d.status in ('pending', 'starting')
      order by seconds desc`,
  );
}

/** Returns, per notifier, messages to the operator that are late or were given up within the last hour. */
export async function lateNotifications(db: Db) {
  return rowsOf(
    db,
    sql<{ notifier: string; waiting: number; given_up: number; seconds: number | null }>`
      select notifier, count(*) filter (where status = 'queued' and attempts > 0)::int as waiting,
        count(*) filter (where status = 'given_up')::int as given_up,
        ${age("min(created_at) filter (where status = 'queued')")} as seconds
      from notification where status = 'queued' or (status = 'given_up' and finished_at > now() - interval '1 hour')
      group by notifier order by notifier`,
  );
}

/** Returns the time since each machine last reported, in seconds. */
export async function machineAges(db: Db) {
  return rowsOf(
    db,
    sql<{ name: string; seconds: number }>`select name, ${age("seen_at")} as seconds from machine order by name`,
  );
}

/** Returns what each living project has in the data folder, by its rows. */
export async function partsOnDisk(db: Db) {
  return rowsOf(
    db,
    sql<{
      id: string;
      number: number;
      subject: string;
      has_commits: boolean;
      has_stored_files: boolean;
      /** The summary and the hint about its database if that is missing. */
      database: readonly [string, string] | null;
      /** The image of the active deployment if no replica of it is ready. */
      image: { readonly ref: string; readonly commit: string; readonly rebuild: string | null } | null;
      backup: { readonly id: string; readonly storage: string; readonly key: string } | null;
    }>`
      select p.id, p.number, ${named} as subject, p.deploy_branch is not null as has_commits,
        p.storage and coalesce(u.storage_bytes, 0) > 0 as has_stored_files,
        (select jsonb_build_array(b.failure->>'summary', b.failure->>'hint') from project_database b
          where b.project_id = p.id and b.status = 'failed' and b.failure->>'code' = 'part_missing') as database,
        (select jsonb_build_object('ref', d.image_ref, 'commit', d.commit, 'rebuild', (select status from build r
            where r.project_id = p.id and r.requested_by = ${rebuilder} and r.commit = d.commit order by number desc limit 1))
          from deployment d where d.project_id = p.id and d.status = 'active' and not exists (select from replica r
            where r.deployment_id = d.id and r.state = 'running' and r.ready_attempt = r.attempt)) as image,
        (select jsonb_build_object('id', k.id, 'storage', k.storage, 'key', k.storage_key) from backup k
          where k.project_id = p.id and k.status = 'completed' and k.expired_at is null order by k.id desc limit 1) as backup
      from project p join organization o on o.id = p.org_id left join disk_use u on u.project_id = p.id
      where p.deleted_at is null order by p.number`,
  );
}
