import { nextRouteVersion, readyReplicas, servedProjects } from "../../features/deployments/deployments.ts";
import { servedHostnames } from "../../features/domains/domains.ts";
import type { Edge, Route, RouteTable, Target } from "../../ports/edge.ts";
import type { Instance } from "../../ports/runtime.ts";
import type { Platform } from "../platform.ts";

interface Flight {
  current: Promise<RouteTable>;
  /** Begins when the current one has ended; undefined while nobody waits for it. */
  next: Promise<RouteTable> | undefined;
}

// One table at a time on its way to an edge, whoever asks.
const flights = new WeakMap<Edge, Flight>();

/**
 * Brings the edge in line with the rows and resolves when it serves by them: whatever was committed before the call is in the
 * table. Who calls while a table is on its way shares the next one with all others who do.
 */
export function syncEdge(platform: Platform): Promise<RouteTable> {
  const { edge } = platform.ports;
  const flight = flights.get(edge);
  if (flight === undefined) return takeOff(platform);
  flight.next ??= flight.current.then(
    () => takeOff(platform),
    () => takeOff(platform),
  );
  return flight.next;
}

function takeOff(platform: Platform): Promise<RouteTable> {
  const { edge } = platform.ports;
  const flight: Flight = { current: bring(platform), next: undefined };
  flights.set(edge, flight);
  const land = () => void (flight.next === undefined && flights.delete(edge));
  flight.current.then(land, land);
  return flight.current;
}

/** The version is drawn before the rows are read, so that a table with a larger one is never the older. */
async function bring(platform: Platform): Promise<RouteTable> {
  const version = await nextRouteVersion(platform.db);
  const projects = await servedProjects(platform.db);
  const ids = projects.flatMap(({ deployment_id }) => (deployment_id === null ? [] : [deployment_id]));
  const ready = await readyReplicas(platform.db, ids);
  const named = Map.groupBy(await servedHostnames(platform.db), (domain) => domain.project_id);
  const routes = await Promise.all(
    projects.map(async (project) => {
      const route = await routeOf(platform, project, ready);
      // One route for the project's own name and for each hostname that is served for it; all lead to the same.
      const others = (named.get(project.project_id) ?? []).map(({ hostname }) => ({ ...route, hostname }));
      return [route, ...others];
    }),
  );
  const table = { version, routes: routes.flat() };
  await platform.ports.edge.apply(table);
  return table;
}

type Served = Awaited<ReturnType<typeof servedProjects>>[number];
type Ready = Awaited<ReturnType<typeof readyReplicas>>;

async function routeOf(platform: Platform, project: Served, ready: Ready): Promise<Route> {
  const { hostname, project_id, deployment_id } = project;
  if (project.suspended_at !== null) return { hostname, project_id, state: "suspended", targets: [] };
  if (project.deleted_at !== null) return { hostname, project_id, state: "deleted", targets: [] };
  if (deployment_id === null) return { hostname, project_id, state: "empty", targets: [] };
  const instances = await platform.ports.runtime.observe(deployment_id);
  const targets = readyTargets(instances, ready.get(deployment_id) ?? new Map(), project.replicas);
  return { hostname, project_id, state: "serving", targets };
}

/** The running replicas whose present start has passed its health check; those that a scale-down will end get nothing new. */
export function readyTargets(
  instances: readonly Instance[],
  ready: ReadonlyMap<number, number>,
  replicas: number,
): Target[] {
  return instances
    .filter(
      (instance) =>
        instance.state === "running" && instance.ordinal < replicas && ready.get(instance.ordinal) === instance.attempt,
    )
    .flatMap((instance) => (instance.address === null ? [] : [instance.address]));
}
