import type { Route } from "../../ports/edge.ts";

/** What differs between the routes of two versions: a table of thousands seldom changes in more than one. */
export interface RouteChanges {
  readonly from: number;
  readonly version: number;
  readonly changed: readonly Route[];
  /** Hostnames that have no route any more. */
  readonly removed: readonly string[];
}

export type RoutesByName = ReadonlyMap<string, Route>;

export function byName(routes: readonly Route[]): RoutesByName {
  return new Map(routes.map((route) => [route.hostname, route]));
}

/** Compares route by route; those that are the same object cost nothing. */
export function compareRoutes(before: RoutesByName, after: RoutesByName): Pick<RouteChanges, "changed" | "removed"> {
  const changed = [...after.values()].filter((route) => !isSame(before.get(route.hostname), route));
  const removed = [...before.keys()].filter((hostname) => !after.has(hostname));
  return { changed, removed };
}

function isSame(one: Route | undefined, other: Route): boolean {
  return one === other || JSON.stringify(one) === JSON.stringify(other);
}
