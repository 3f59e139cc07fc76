import type { Route } from "../../ports/edge.ts";

/** The differences between two versions of the routes: between versions, seldom more than one route of thousands changes. */
export interface RouteChanges {
  readonly from: number;
  readonly version: number;
  readonly changed: readonly Route[];
  /** Hostnames that no longer have a route. */
  readonly removed: readonly string[];
}

export type RoutesByName = ReadonlyMap<string, Route>;

export function byName(routes: readonly Route[]): RoutesByName {
  return new Map(routes.map((route) => [route.hostname, route]));
}

/** Compares route by route; identical objects cost nothing. */
export function compareRoutes(before: RoutesByName, after: RoutesByName): Pick<RouteChanges, "changed" | "removed"> {
  const changed = [...after.values()].filter((route) => !isSame(before.get(route.hostname), route));
  const removed = [...before.keys()].filter((hostname) => !after.has(hostname));
  return { changed, removed };
}

function isSame(one: Route | undefined, other: Route): boolean {
  return one === other || JSON.stringify(one) === JSON.stringify(other);
}
