import {
  changedRoutes,
  nextRouteVersion,
  saveEdge,
  type ProjectRoutes,
} from "../../features/deployments/deployments.ts";
import type { Edge } from "../../ports/edge.ts";
import type { Task } from "../driver.ts";
import type { Platform } from "../platform.ts";

const periodMs = 3000;
const drainPollMs = 100;

/** Keeps this machine's edge running and its routes as the rows say, and reports what it serves. */
export function edgeTask(platform: Platform): Task {
  const { db, wakeups, machine, ports } = platform;
  const known = new Map<string, ProjectRoutes["routes"]>();
  let snapshot: string | null = null;
  return {
    name: "edge",
    periodMs,
    topics: ["edge"],
    async run() {
      const version = await nextRouteVersion(db);
      const changes = await changedRoutes(db, snapshot);
      for (const { project_id, routes } of changes.projects) known.set(project_id, routes);
      snapshot = changes.snapshot;
      const routes = [...known.values()].flat();
      await ports.edge.apply({ version, routes, challenge: null });
      const { kind } = ports.edge;
      const id = edgeId(machine, ports.edge);
      const open_requests = await openRequests(platform, changes.draining);
      await saveEdge(db, { id, machine, kind, route_version: version, certificate_version: 0, open_requests });
      await wakeups.send(db, "edges", id);
      const detail = `${routes.length} routes, version ${version}`;
      return changes.draining.length > 0 ? { detail, againMs: drainPollMs } : { detail };
    },
  };
}

/** The edge of a machine. */
export const edgeId = (machine: string, { kind }: Pick<Edge, "kind">): string => `${machine}/${kind}`;

async function openRequests({ ports }: Platform, draining: readonly string[]): Promise<Record<string, number>> {
  if (draining.length === 0) return {};
  const open = await ports.edge.openRequests();
  return Object.fromEntries(draining.map((target) => [target, open.get(target) ?? 0]));
}
