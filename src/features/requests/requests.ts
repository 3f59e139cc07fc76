import type { EdgeRequest } from "../../ports/edge.ts";
import type { LogStore } from "../../ports/log-store.ts";
import type { Db } from "../../store/database.ts";
import { sql } from "kysely";

export interface KeepingRequests {
  readonly db: Db;
  readonly ports: { readonly logStore: Pick<LogStore, "appendRequests"> };
}

/** Stores the requests that an edge reported, each project's in its own log; those of projects that are gone are dropped. */
export async function keepRequests({ db, ports }: KeepingRequests, reported: readonly EdgeRequest[]): Promise<void> {
  const byProject = Map.groupBy(reported, (request) => request.project_id);
  for (const { id, places } of await selectPlaces(db, [...byProject.keys()])) {
    const placeOf = new Map(places.map((place) => [place.target, place]));
    const requests = (byProject.get(id) ?? []).map(
      ({ at, method, path, status, ms, bytes, target, request_id, weight }) => {
        const { deployment = null, replica = null } = (target === null ? undefined : placeOf.get(target)) ?? {};
        return { at, method, path, status, ms, bytes, deployment, replica, request_id, weight };
      },
    );
    await ports.logStore.appendRequests(id, requests);
  }
}

interface Place {
  readonly project_id: string;
  /** `host:port`. */
  readonly target: string;
  readonly deployment: number;
  readonly replica: number;
}

/** Returns which of these projects exist, of any organization, and where their replicas run. */
async function selectPlaces(db: Db, projectIds: readonly string[]) {
  const ids = [...projectIds];
  const { rows } = await sql<{ id: string; places: readonly Place[] }>`
    select p.id, coalesce((select jsonb_agg(jsonb_build_object('project_id', p.id, 'target', r.host || ':' || r.port,
        'deployment', d.number, 'replica', r.ordinal))
      from replica r join deployment d on d.id = r.deployment_id
      where r.project_id = p.id and r.org_id = p.org_id and r.process = 'web' and r.host is not null), '[]') as places
    from project p where p.id = any(${ids}) and p.purged_at is null`.execute(db);
  return rows;
}
