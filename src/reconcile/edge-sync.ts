import { nextRouteVersion, readyReplicas, servedProjects } from "../features/deployments/deployments.ts";
import { servedHostnames } from "../features/domains/domains.ts";
import type { Route, RouteTable, Target } from "../ports/edge.ts";
import type { Instance } from "../ports/runtime.ts";
import type { World } from "./world.ts";

/**
 * Brings the edge in line with the rows and resolves when it serves by them. The version is drawn before the rows are read,
 * so whatever was committed before the call is in a table at least this new.
 */
export async function syncEdge(world: World): Promise<RouteTable> {
  const version = await nextRouteVersion(world.db);
  const projects = await servedProjects(world.db);
  const named = Map.groupBy(await servedHostnames(world.db), (domain) => domain.project_id);
  const routes = await Promise.all(projects.map((project) => routesOf(world, project, named.get(project.project_id))));
  const table = { version, routes: routes.flat() };
  await world.ports.edge.apply(table);
  return table;
}

type Served = Awaited<ReturnType<typeof servedProjects>>[number];

/** One route for the project's own name and for each hostname that is served for it; all lead to the same. */
async function routesOf(
  world: World,
  project: Served,
  domains: readonly { hostname: string }[] = [],
): Promise<Route[]> {
  const route = await routeOf(world, project);
  return [route, ...domains.map(({ hostname }) => ({ ...route, hostname }))];
}

async function routeOf(world: World, project: Served): Promise<Route> {
  const { hostname, project_id } = project;
  if (project.suspended_at !== null) return { hostname, project_id, state: "suspended", targets: [] };
  if (project.deleted_at !== null) return { hostname, project_id, state: "deleted", targets: [] };
  if (project.deployment_id === null) return { hostname, project_id, state: "empty", targets: [] };
  return {
    hostname,
    project_id,
    state: "serving",
    targets: await targetsOf(world, project.deployment_id, project.replicas),
  };
}

async function targetsOf(world: World, deploymentId: string, replicas: number): Promise<Target[]> {
  const [instances, ready] = await Promise.all([
    world.ports.runtime.observe(deploymentId),
    readyReplicas(world.db, deploymentId),
  ]);
  return readyTargets(instances, ready, replicas);
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
