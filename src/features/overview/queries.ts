import { sql } from "kysely";
import type { BackupStatus, DatabaseStatus, DeploymentStatus } from "../../contract/states.ts";
import type { Columns, Db, Tx } from "../../store/database.ts";
import { isWithin, type Reach } from "../../store/within.ts";
import type { DiskLimits } from "../disk/disk.ts";

export interface OverviewRow {
  readonly id: string;
  readonly slug: string;
  /** The slug of the project that a preview belongs to. */
  readonly preview_of: string | null;
  readonly name: string;
  readonly hostname: string;
  readonly deleted_at: string | null;
  /** Sum over all process types. */
  readonly replicas: number;
  readonly ready: number;
  readonly active: DeploymentFacts | null;
  readonly last: DeploymentFacts | null;
  readonly build_failed: boolean;
  readonly requests: number;
  readonly errors: number;
  /** Parts of the hour in which anything was counted, unordered; null for none. */
  readonly parts: readonly HourPart[] | null;
  readonly database: DatabaseStatus | null;
  readonly backup: { readonly id: string; readonly status: BackupStatus; readonly at: string } | null;
  readonly storage_bytes: number | null;
  readonly database_bytes: number | null;
  readonly images_bytes: number | null;
  readonly maintenance: boolean;
  readonly storage_over_limit: boolean;
  readonly database_over_limit: boolean;
  readonly images_over_limit: boolean;
  readonly hostname_waiting: boolean;
  readonly hostname_lost: boolean;
  readonly certificate_failed: boolean;
  readonly certificate_ending: boolean;
}

export interface DeploymentFacts extends Columns<"build", "id" | "number" | "commit" | "branch" | "message"> {
  readonly status: DeploymentStatus;
  readonly at: string;
}

interface HourPart {
  readonly part: number;
  readonly requests: number;
  readonly errors: number;
}

export const hourParts = 20;

/** Returns all living projects and previews that a caller reaches, newest first, in one statement. Measured with 1,000 projects. */
export async function selectOverview(
  db: Db | Tx,
  reach: Reach,
  { hourFrom, limits }: { readonly hourFrom: Date; readonly limits: DiskLimits },
): Promise<readonly OverviewRow[]> {
  const orgId = reach.org_id;
  const { rows } = await sql<OverviewRow>`
    with part as (
      select project_id, least(${hourParts - 1}, floor(extract(epoch from at - ${hourFrom}) / ${3600 / hourParts}))::integer as part,
        sum(requests)::bigint as requests, sum(errors)::bigint as errors from project_metric
      where org_id = ${orgId} and bucket_seconds = 60 and at >= ${hourFrom} group by 1, 2),
    traffic as (
      select project_id, sum(requests)::bigint as requests, sum(errors)::bigint as errors,
        jsonb_agg(jsonb_build_object('part', part, 'requests', requests, 'errors', errors)) as parts from part group by project_id),
    ready as (
      select r.deployment_id, count(*)::integer as ready from replica r join deployment d on d.id = r.deployment_id and d.status = 'active'
        join deployment_process t on t.deployment_id = d.id and t.process = r.process
      where r.org_id = ${orgId} and r.state = 'running' and r.ready_attempt = r.attempt and r.ordinal < t.replicas group by r.deployment_id),
    wanted as (
      select t.deployment_id, sum(t.replicas)::integer as replicas from deployment_process t join deployment d on d.id = t.deployment_id
      where d.org_id = ${orgId} and d.status = 'active' group by t.deployment_id),
    hostnames as (
      select d.project_id, bool_or(d.verified_at is null) as waiting, bool_or(d.verified_at is not null and d.lost_at is not null) as lost,
        bool_or((e.status = 'failed' or e.not_after is not null) and coalesce(e.not_after <= now(), true)) as failed,
        bool_or(e.not_after > now() and e.not_after - now() < least(interval '14 days', (e.not_after - e.not_before) / 4)) as ending
      from domain d left join certificate e on e.hostname = d.hostname and e.wanted where d.org_id = ${orgId} group by d.project_id)
    select p.id, p.slug, (select o.slug from project o where o.id = p.preview_of) as preview_of, p.name, p.hostname, p.deleted_at, p.maintenance_since is not null as maintenance, coalesce(w.replicas, p.replicas) as replicas, coalesce(r.ready, 0) as ready,
      ${facts("a", "activated_at")} as active, ${facts("l", "at")} as last,
      coalesce(b.status = 'failed', false) as build_failed,
      coalesce(t.requests, 0) as requests, coalesce(t.errors, 0) as errors, t.parts, db.status as database,
      case when k.id is null then null else jsonb_build_object('id', k.id, 'status', k.status, 'at', ${wire("k.at")}) end as backup,
      s.storage_bytes, s.database_bytes, s.images_bytes, coalesce(s.storage_access <> 'open', false) as storage_over_limit,
      coalesce(s.database_access <> 'open', false) as database_over_limit,
      coalesce(s.images_bytes > coalesce(p.images_limit_bytes, ${limits.images_bytes}::bigint), false) as images_over_limit,
      coalesce(h.waiting, false) as hostname_waiting, coalesce(h.lost, false) as hostname_lost, coalesce(h.failed, false) as certificate_failed, coalesce(h.ending, false) as certificate_ending
    from project p
    left join lateral (select a.*, b.branch, split_part(b.message, E'\\n', 1) as message from deployment a join build b on b.id = a.build_id
      where a.project_id = p.id and a.status = 'active') a on true
    left join lateral (select l.*, coalesce(l.finished_at, l.created_at) as at, b.branch, split_part(b.message, E'\\n', 1) as message
      from deployment l join build b on b.id = l.build_id
      where l.org_id = p.org_id and l.project_id = p.id and not l.rehearse_only order by l.number desc limit 1) l on true
    left join lateral (select b.status from build b
      where b.org_id = p.org_id and b.project_id = p.id and not b.rehearse_only order by b.number desc limit 1) b on true
    left join lateral (select k.id, k.status, coalesce(k.finished_at, k.created_at) as at from backup k
      where k.org_id = p.org_id and k.project_id = p.id and k.expired_at is null order by k.id desc limit 1) k on true
    left join project_database db on db.project_id = p.id
    left join ready r on r.deployment_id = a.id
    left join wanted w on w.deployment_id = a.id
    left join traffic t on t.project_id = p.id
    left join disk_use s on s.project_id = p.id
    left join hostnames h on h.project_id = p.id
    where p.org_id = ${orgId} and p.deleted_at is null and ${isWithin("p.id", reach)} order by p.id desc`.execute(db);
  return rows;
}

/** Returns the facts about the organization as a whole; of its approvals, those that the caller sees. */
export async function selectOrganization(db: Db | Tx, caller: Reach & { readonly token_id: string }) {
  const { org_id: orgId, token_id } = caller;
  const { rows } = await sql<{ max_projects: number; approvals_pending: number; alerts: number }>`
    select o.max_projects, (select count(*) from approval a where a.org_id = o.id and a.status = 'pending' and a.expires_at > now()
        and (a.token_id = ${token_id} or ${isWithin("a.project_id", caller)}))::integer
      as approvals_pending, (select count(*) from alert where resolved_at is null)::integer as alerts
    from organization o where o.id = ${orgId}`.execute(db);
  return rows[0] ?? { max_projects: 0, approvals_pending: 0, alerts: 0 };
}

function facts(table: "a" | "l", time: "activated_at" | "at") {
  const column = (name: string) => sql.ref(`${table}.${name}`);
  return sql`case when ${column("id")} is null then null else jsonb_build_object('id', ${column("id")}, 'number', ${column("number")},
    'status', ${column("status")}, 'commit', ${column("commit")}, 'branch', ${column("branch")}, 'message', ${column("message")}, 'at', ${wire(`${table}.${time}`)}) end`;
}

/** Formats a timestamp inside JSON as RFC 3339 with milliseconds, the same as the driver does for a column. */
function wire(column: string) {
  return sql`to_char(date_trunc('milliseconds', ${sql.ref(column)} at time zone 'UTC'), 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`;
}
