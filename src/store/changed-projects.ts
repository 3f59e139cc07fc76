import { sql, type RawBuilder } from "kysely";

/**
 * A statement for the projects whose routes, workloads or hostnames may have changed since the snapshot, for all projects without one.
 * Triggers note the transaction that changed a project; one that had not committed when the snapshot was taken counts as later.
 */
export function changedProjects(since: string | null): RawBuilder<unknown> {
  // Two texts, because one plan for both would read the whole table.
  if (since === null) return sql`select project_id from route_change`;
  return sql`
    select project_id from route_change where changed_by >= pg_snapshot_xmin(${since}::pg_snapshot)
      and not pg_visible_in_snapshot(changed_by, ${since}::pg_snapshot)`;
}
