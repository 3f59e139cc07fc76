import { sql } from "kysely";
import type { Db } from "../../store/database.ts";

export interface Place {
  readonly project_id: string;
  /** `host:port`. */
  readonly target: string;
  readonly deployment: number;
  readonly replica: number;
}

/** Returns which of these projects exist, of any organization, and where their replicas run. */
export async function selectPlaces(db: Db, projectIds: readonly string[]) {
  const ids = [...projectIds];
  const { rows } = await sql<{ id: string; places: readonly Place[] }>`
    select p.id, coalesce((select jsonb_agg(jsonb_build_object('project_id', p.id, 'target', r.host || ':' || r.port,
        'deployment', d.number, 'replica', r.ordinal))
      from replica r join deployment d on d.id = r.deployment_id
      where r.project_id = p.id and r.org_id = p.org_id and r.process = 'web' and r.host is not null), '[]') as places
    from project p where p.id = any(${ids}) and p.purged_at is null`.execute(db);
  return rows;
}
