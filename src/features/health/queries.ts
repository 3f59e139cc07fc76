import { CompiledQuery, sql } from "kysely";
import type { DatabaseStatus } from "../../contract/states.ts";
import type { Db } from "../../store/database.ts";
import type { Live, TrafficSample, TrafficTrouble } from "./traffic.ts";

/** Crashes of one deployment, as the timeline shows them. */
interface CrashGroup {
  readonly deployment: number;
  readonly activated_at: string;
  readonly crashes: number;
  readonly since: string;
  readonly at: string;
  readonly exit_code: number | null;
  readonly out_of_memory: boolean;
}

/** A build or deployment, with the code of its failure. */
interface Work {
  readonly id: string;
  readonly number: number;
  readonly status: string;
  readonly created_at: string;
  readonly code: string | null;
}

export interface HealthFacts {
  readonly id: string;
  readonly org_id: string;
  readonly org_slug: string;
  readonly slug: string;
  readonly deleted: boolean;
  readonly is_preview: boolean;
  readonly maintenance_since: string | null;
  readonly sleep: string | null;
  readonly sleep_at: string | null;
  readonly active: number | null;
  readonly wanted: number;
  readonly ready: number;
  readonly web_wanted: number;
  readonly web_ready: number;
  /** The newest build and the newest deployment. */
  readonly build: Work | null;
  readonly deployment: Work | null;
  /** Of the last day, newest first. */
  readonly crash_groups: readonly CrashGroup[] | null;
  /** Crashes of the active deployment in the last 15 minutes, and in the last 5. */
  readonly crashes_15: number;
  readonly crashes_5: number;
  /** Of the active deployment's replica that crashed most often in a row. */
  readonly restarts: number;
  readonly database: DatabaseStatus | null;
  readonly database_alert: string | null;
  readonly traffic: TrafficTrouble | null;
  readonly back_to: number | null;
  readonly released_since: boolean;
  /** The health that was stored last. */
  readonly state: string | null;
  readonly since: string | null;
}

const isCrash = "c.action in ('replica.crashed', 'replica.out_of_memory')";

/** The columns of `HealthFacts` about projects `p`, their active deployments `a`, and what `healthJoins` adds to both. */
export const healthColumns = `p.id, p.org_id, o.slug as org_slug, p.slug, p.deleted_at is not null as deleted, p.preview_of is not null as is_preview, p.maintenance_since, p.sleep, p.sleep_at, a.number as active,
    coalesce(w.wanted, 0)::integer as wanted, coalesce(w.web_wanted, 0)::integer as web_wanted, coalesce(w.ready, 0)::integer as ready,
    coalesce(w.web_ready, 0)::integer as web_ready, coalesce(w.restarts, 0) as restarts,
    case when b.id is not null then to_jsonb(b) end as build, case when l.id is not null then to_jsonb(l) end as deployment,
    g.groups as crash_groups, c.crashes_15, c.crashes_5, db.status as database, n.summary as database_alert, h.traffic, h.state, h.since,
    back.number as back_to, exists (select from deployment d where d.project_id = p.id and d.number > back.number and d.number <= a.number
      and d.trigger in ('push', 'upload', 'follow', 'redeploy') and d.image->>'release_command' is not null) as released_since`;

export const healthJoins = `join organization o on o.id = p.org_id
  left join deployment a on a.project_id = p.id and a.status = 'active'
  left join lateral (select sum(t.replicas) as wanted, sum(t.replicas) filter (where t.process = 'web') as web_wanted, sum(r.up) as ready,
    sum(r.up) filter (where t.process = 'web') as web_ready, max(r.restarts) as restarts
    from deployment_process t cross join lateral (select count(*) filter (where i.state = 'running' and i.ready_attempt = i.attempt and i.ordinal < t.replicas) as up,
      max(i.restarts) filter (where i.exited_at > now() - interval '150 seconds') as restarts
      from replica i where i.deployment_id = a.id and i.process = t.process) r
    where t.deployment_id = a.id) w on true
  left join lateral (select id, number, status, created_at, failure->>'code' as code
    from build where project_id = p.id and org_id = p.org_id and not rehearse_only order by number desc limit 1) b on true
  left join lateral (select id, number, status, created_at, failure->>'code' as code
    from deployment where project_id = p.id and org_id = p.org_id and not rehearse_only order by number desc limit 1) l on true
  left join lateral (select jsonb_agg(jsonb_build_object('deployment', d.number, 'activated_at', d.activated_at, 'crashes', (c.detail->>'crashes')::integer,
      'since', c.detail->>'since', 'at', c.created_at, 'exit_code', (c.detail->>'exit_code')::integer,
      'out_of_memory', c.action = 'replica.out_of_memory') order by d.number desc) as groups
    from activity c join deployment d on d.project_id = p.id and d.number = (c.detail->>'deployment')::integer
    where c.project_id = p.id and not c.grouped and ${isCrash} and c.created_at > now() - interval '1 day') g on true
  left join lateral (select count(*)::integer as crashes_15, count(*) filter (where c.created_at > now() - interval '5 minutes')::integer as crashes_5
    from activity c where g.groups is not null and c.project_id = p.id and c.created_at > now() - interval '15 minutes' and ${isCrash}
      and (c.detail->>'deployment')::integer = a.number) c on true
  left join project_database db on db.project_id = p.id
  left join lateral (select summary from alert n where n.name = 'databases' and n.subject = o.slug || '/' || p.slug and n.resolved_at is null
    limit 1) n on true
  left join project_health h on h.project_id = p.id
  left join lateral (select g.number from deployment g where g.project_id = p.id and g.status = 'retired' and g.activated_at is not null
    and g.image_pruned_at is null and g.number < coalesce((select s.number from deployment s where s.id = a.restored_from), a.number)
    order by g.number desc limit 1) back on true`;

/** Returns the facts about the projects of an organization or, for null, of all. */
export async function selectHealthFacts(db: Db, orgId: string | null): Promise<readonly HealthFacts[]> {
  const of = orgId === null ? "" : "and p.org_id = $1";
  const text = `select ${healthColumns} from project p ${healthJoins} where p.purged_at is null ${of}`;
  return (await db.executeQuery<HealthFacts>(CompiledQuery.raw(text, orgId === null ? [] : [orgId]))).rows;
}

/** Stores the states that changed; the stored ones keep their beginning. */
export async function storeStates(
  db: Db,
  states: readonly { readonly project_id: string; readonly org_id: string; readonly state: string }[],
): Promise<void> {
  if (states.length === 0) return;
  await sql`
    insert into project_health (project_id, org_id, state)
    select project_id, org_id, state from jsonb_to_recordset(${JSON.stringify(states)}::jsonb) as g(project_id text, org_id text, state text)
    on conflict (project_id) do update set state = excluded.state, since = now() where project_health.state <> excluded.state`.execute(
    db,
  );
}

interface TrafficRow {
  readonly project_id: string;
  readonly org_id: string;
  readonly samples: readonly TrafficSample[];
  readonly live: readonly Live[];
}

/**
 * Returns the samples of the last hour, and the deployments that went live in it or are active, of the projects that got ten failed or slow
 * (over 200 ms) requests in the last five minutes, or in which trouble is stored.
 */
export async function selectTraffic(db: Db): Promise<readonly TrafficRow[]> {
  const { rows } = await sql<TrafficRow>`
    with suspect as (
      select m.project_id from project_metric m where m.bucket_seconds = 15 and m.at > now() - interval '5 minutes'
      group by m.project_id having sum(m.errors) >= 10 or sum((select sum(n) from unnest(m.latencies[9:]) n)) >= 10
      union select project_id from project_health where traffic is not null)
    select p.id as project_id, p.org_id,
      coalesce((select jsonb_agg(jsonb_build_object('at', m.at, 'requests', m.requests, 'errors', m.errors, 'latencies', m.latencies) order by m.at)
        from project_metric m where m.project_id = p.id and m.bucket_seconds = 15 and m.at > now() - interval '65 minutes'), '[]') as samples,
      coalesce((select jsonb_agg(jsonb_build_object('number', d.number, 'activated_at', d.activated_at) order by d.activated_at)
        from deployment d where d.project_id = p.id and d.activated_at is not null
          and (d.status = 'active' or d.activated_at > now() - interval '65 minutes' or d.retired_at > now() - interval '65 minutes')), '[]') as live
    from suspect s join project p on p.id = s.project_id
    where exists (select from deployment d where d.project_id = p.id and d.status = 'active')`.execute(db);
  return rows;
}

export async function storeTrouble(
  db: Db,
  { project_id, org_id }: { readonly project_id: string; readonly org_id: string },
  trouble: TrafficTrouble | null,
): Promise<void> {
  const traffic = trouble === null ? null : JSON.stringify(trouble);
  await sql`insert into project_health (project_id, org_id, traffic) values (${project_id}, ${org_id}, ${traffic})
    on conflict (project_id) do update set traffic = excluded.traffic where project_health.traffic is distinct from excluded.traffic`.execute(
    db,
  );
}
