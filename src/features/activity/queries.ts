import { sql, type RawBuilder } from "kysely";
import type { changedNouns } from "../../contract/activity.ts";
import type { Result } from "../../contract/routes.ts";
import type { Db, Tx } from "../../store/database.ts";
import { isWithin, type Reach } from "../../store/within.ts";
import { prefixesOf, type EntryCursor, type EntryKind, type EntryRow } from "./rules.ts";

/** Which entries to select: by organization, project, kind and position. */
export interface EntriesQuery {
  readonly org_id: string;
  readonly project_id?: string;
  readonly project_ids?: readonly string[] | null;
  /** Undefined means all kinds. */
  readonly kinds?: readonly EntryKind[] | undefined;
  readonly before?: EntryCursor | undefined;
  readonly limit: number;
}

/** Returns what happened, newest first: recorded changes and events, and deployments, builds and runs. Reads no further than the page. */
export async function selectEntries(db: Db | Tx, query: EntriesQuery): Promise<readonly EntryRow[]> {
  const wanted = sources.filter(({ kind }) => kind === null || (query.kinds?.includes(kind) ?? true));
  const parts = wanted.map((source) => sql`(${read(source, query)})`);
  const { rows } = await sql<EntryRow>`
    select e.*, p.slug as project, b.number as build_number, k.created_at as backup_at,
      (extract(epoch from e.at) * 1000000)::bigint as at_us
    from (${sql.join(parts, sql` union all `)}) e left join project p on p.id = e.project_id
      left join build b on b.id = e.target and b.org_id = e.org_id
      left join backup k on k.id = e.target and k.org_id = e.org_id
    order by e.at desc, e.id desc limit ${query.limit}`.execute(db);
  return rows;
}

interface Source {
  /** Null: entries of several kinds; each entry's action determines its kind. */
  readonly kind: EntryKind | null;
  readonly table: "activity" | "deployment" | "build" | "cron_run";
  readonly time: "created_at" | "finished_at";
  /** Which rows are entries. Must match the condition of the table's partial index word for word. */
  readonly condition: RawBuilder<unknown>;
  readonly columns: RawBuilder<unknown>;
  readonly joins: RawBuilder<unknown>;
}

const nothing = sql``;

const sources: readonly Source[] = [
  {
    kind: null,
    table: "activity",
    time: "created_at",
    condition: sql`not s.grouped`,
    columns: sql`s.action, s.target, s.detail, s.actor_token_id, s.actor_name`,
    joins: nothing,
  },
  {
    kind: "deployment",
    table: "deployment",
    time: "finished_at",
    condition: sql`s.finished_at is not null and s.status <> 'superseded'`,
    columns: sql`
      case when s.activated_at is null then 'deployment.failed' else 'deployment.activated' end as action, s.number::text as target,
      jsonb_strip_nulls(jsonb_build_object('number', s.number, 'trigger', s.trigger, 'commit', s.commit, 'stage', s.failure->>'stage',
        'code', s.failure->>'code', 'reason', s.failure->>'summary', 'build', s.build_id)) as detail,
      case when s.trigger = 'variables' then null when s.trigger in ('rollback', 'restart') then a.actor_token_id else b.token_id end as actor_token_id, case s.trigger when 'variables' then 'berth' when 'rollback' then coalesce(a.actor_name, 'berth')
        when 'restart' then coalesce(a.actor_name, 'berth') else coalesce(b.requested_by, 'berth') end as actor_name`,
    // The request for a rollback or restart is recorded in the transaction that creates the deployment, so both have the same timestamp.
    joins: sql`join build b on b.id = s.build_id left join lateral (
      select a.actor_token_id, a.actor_name from activity a where s.trigger in ('rollback', 'restart') and a.project_id = s.project_id
        and a.created_at = s.created_at and a.action in ('deployment.rollback_requested', 'process.restarted') limit 1) a on true`,
  },
  {
    kind: "build",
    table: "build",
    time: "finished_at",
    condition: sql`s.status = 'failed' and s.finished_at is not null and not s.rehearse_only`,
    columns: sql`'build.failed' as action, s.id as target,
      jsonb_strip_nulls(jsonb_build_object('number', s.number, 'commit', s.commit, 'stage', s.failure->>'stage', 'code', s.failure->>'code',
        'reason', s.failure->>'summary')) as detail,
      s.token_id as actor_token_id, coalesce(s.requested_by, 'berth') as actor_name`,
    joins: nothing,
  },
  {
    kind: "cron",
    table: "cron_run",
    time: "finished_at",
    condition: sql`s.status in ('failed', 'timeout', 'unknown') and s.finished_at is not null and not s.grouped`,
    columns: sql`'cron.run_failed' as action, j.name as target,
      jsonb_strip_nulls(jsonb_build_object('status', s.status, 'http_status', s.http_status, 'reason', s.reason, 'failures', s.failures,
        'since', s.failing_since)) as detail,
      null as actor_token_id, 'berth' as actor_name`,
    joins: sql`join cron_job j on j.id = s.job_id`,
  },
];

function read(
  source: Source,
  { org_id, project_id, project_ids = null, kinds, before, limit }: EntriesQuery,
): RawBuilder<unknown> {
  const time = sql.ref(`s.${source.time}`);
  const prefixes = source.kind === null && kinds !== undefined ? prefixesOf(kinds) : undefined;
  const at = before && sql`'epoch'::timestamptz + ${before.at_us}::bigint * interval '1 microsecond'`;
  return sql`
    select s.id, s.org_id, s.project_id, ${time} as at, ${source.columns}
    from ${sql.table(source.table)} s ${source.joins}
    where s.org_id = ${org_id} and ${source.condition}
      ${project_id === undefined ? nothing : sql`and s.project_id = ${project_id}`}
      and ${isWithin("s.project_id", { project_ids })}
      ${prefixes === undefined ? nothing : sql`and split_part(s.action, '.', 1) = any(${prefixes})`}
      ${at === undefined ? nothing : sql`and (${time}, s.id) < (${at}, ${before?.id})`}
    order by ${time} desc, s.id desc limit ${limit}`;
}

interface ChangeRow {
  readonly noun: (typeof changedNouns)[number] | null;
  readonly project: string | null;
  readonly bound: string;
  readonly reset: boolean;
}

/**
 * Returns what changed after a cursor, each noun of a project once; without a cursor, only the current position. The cursor is a
 * transaction number below which every transaction has ended, so no change can appear before it later. Transaction numbers belong to the
 * whole PostgreSQL server, so an open transaction in another database of the server delays the changes made after its start until it ends.
 */
export async function selectChanges(
  db: Db | Tx,
  reach: Reach,
  after: string | undefined,
): Promise<Result<"activity.changes">> {
  const { rows } = await sql<ChangeRow>`
    with bound as materialized (select pg_snapshot_xmin(pg_current_snapshot())::text::bigint as xid)
    select b.xid::text as bound, c.noun, c.project,
      ${after === undefined ? sql`false` : sql`coalesce((select xid from change order by at limit 1) > ${after}::bigint, false)`} as reset
    from bound b left join lateral (
      select distinct c.noun, p.slug as project from change c left join project p on p.id = c.project_id and p.org_id = c.org_id
      where c.org_id = ${reach.org_id} and ${isWithin("c.project_id", reach)} and c.xid >= ${after ?? "9223372036854775807"}::bigint and c.xid < b.xid
    ) c on true`.execute(db);
  const changes = rows.flatMap(({ noun, project }) => (noun === null ? [] : [{ noun, project }]));
  return { changes, reset: rows[0]?.reset ?? false, next_cursor: rows[0]?.bound ?? "0" };
}
