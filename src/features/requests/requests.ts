import type { EdgeRequest } from "../../ports/edge.ts";
import type { LogStore } from "../../ports/log-store.ts";
import type { Db } from "../../store/database.ts";
import { selectPlaces } from "./queries.ts";

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
