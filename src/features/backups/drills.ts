import { createHash } from "node:crypto";
import { sql } from "kysely";
import type { Result } from "../../contract/routes.ts";
import { canonicalJson } from "../../kit/canonical-json.ts";
import type { Db, Tx } from "../../store/database.ts";
import type { ProjectKey } from "../projects/projects.ts";
import type { DailyState } from "./rules.ts";

export type Evidence = NonNullable<Result<"backups.drill">["evidence"]>;

const shown = ["id", "origin", "status", "created_at", "finished_at", "problem", "sha256"] as const;
const mostListed = 100;
const keptDays = 400;

/** Records a drill, under the id of the operation that performs it. */
export async function insertDrill(
  tx: Tx,
  drill: ProjectKey & { readonly id: string; readonly origin: "manual" | "daily" },
): Promise<void> {
  const { id, org_id, project_id, origin } = drill;
  await tx.insertInto("archive_drill").values({ id, org_id, project_id, origin }).execute();
}

export function drillsOf(db: Db | Tx, { org_id, project_id }: ProjectKey) {
  return db
    .selectFrom("archive_drill")
    .select(shown)
    .where(({ and }) => and({ org_id, project_id }))
    .orderBy("id", "desc")
    .limit(mostListed)
    .execute();
}

export async function drillOf(db: Db | Tx, { org_id, project_id }: ProjectKey, id: string) {
  const row = await db
    .selectFrom("archive_drill")
    .select([...shown, "evidence"])
    .where(({ and }) => and({ org_id, project_id, id }))
    .executeTakeFirst();
  return row && { ...row, evidence: row.evidence as Evidence | null };
}

/** Records the result of a drill, with the checksum of its evidence as canonical JSON. */
export async function endDrill(tx: Tx, id: string, evidence: Evidence, problem: string | null): Promise<void> {
  const text = canonicalJson(evidence);
  await tx
    .updateTable("archive_drill")
    .set({
      ...{ status: problem === null ? "passed" : "mismatch", problem, evidence: text, finished_at: sql`now()` },
      sha256: createHash("sha256").update(text).digest("hex"),
    })
    .where("id", "=", id)
    .execute();
}

/** Marks a drill as failed whose operation ended without a result. */
export async function failDrill(tx: Tx, id: string): Promise<void> {
  await sql`update archive_drill d set status = 'failed', finished_at = now(), problem = o.problem from backup_operation o
    where o.id = d.id and d.id = ${id} and d.status = 'running'`.execute(tx);
}

export async function deleteOldDrills(db: Db): Promise<void> {
  await sql`delete from archive_drill where created_at < now() - make_interval(days => ${keptDays})`.execute(db);
}

/** Returns, for each archived database of a living project that has a moment to restore, how its last daily drill went. */
export async function drillStates(db: Db) {
  const { rows } = await sql<DailyState & ProjectKey>`
    select d.org_id, d.project_id, first.restorable_from as ready_at, last.created_at as last_at,
      case last.status when 'running' then 'running' when 'passed' then 'completed' when 'mismatch' then 'completed' else last.status end
        as last_status,
      (select count(*)::int from archive_drill f where f.project_id = d.project_id and f.org_id = d.org_id and f.origin = 'daily'
        and f.status = 'failed' and f.id > coalesce((select max(g.id) from archive_drill g where g.project_id = d.project_id
          and g.org_id = d.org_id and g.origin = 'daily' and g.status in ('passed', 'mismatch')), '')) as failures
    from project_database d
    join project p on p.id = d.project_id and p.deleted_at is null
    join organization o on o.id = d.org_id and o.suspended_at is null
    join lateral (select min(c.restorable_from) as restorable_from from archive_copy c join archive_chain a on a.id = c.chain_id
      where a.database_id = d.id and a.org_id = d.org_id and a.ended_at is null and c.status = 'completed') first
      on first.restorable_from is not null
    left join lateral (select n.created_at, n.status from archive_drill n where n.project_id = d.project_id and n.org_id = d.org_id
      and n.origin = 'daily' order by n.id desc limit 1) last on true
    where d.status = 'ready' and d.archived`.execute(db);
  return rows;
}

/** Returns the living projects whose newest drill did not pass, as `organization/project`. */
export async function troubledDrills(db: Db) {
  const { rows } = await sql<{ subject: string; problem: string }>`
    select o.slug || '/' || p.slug as subject, coalesce(n.problem, 'It did not end.') as problem
    from project_database d
    join project p on p.id = d.project_id and p.deleted_at is null
    join organization o on o.id = d.org_id
    join lateral (select status, problem from archive_drill n where n.project_id = d.project_id and n.org_id = d.org_id
      and n.status <> 'running' order by n.id desc limit 1) n on n.status in ('mismatch', 'failed')
    where d.archived`.execute(db);
  return rows;
}
