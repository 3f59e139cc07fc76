import { sql, type RawBuilder } from "kysely";

/**
 * Returns a query for the projects whose routes, workloads or hostnames may have changed since the snapshot; without a snapshot, for all
 * projects. Triggers record the transaction that changed a project; one that was uncommitted when the snapshot was taken counts as later.
 */
export function changedProjects(since: string | null): RawBuilder<unknown> {
  // A separate query, because a shared plan would read the whole table in both cases.
  if (since === null) return sql`select project_id from route_change`;
  return sql`
    select project_id from route_change where changed_by >= pg_snapshot_xmin(${since}::pg_snapshot)
      and not pg_visible_in_snapshot(changed_by, ${since}::pg_snapshot)`;
}
