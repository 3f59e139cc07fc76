import type { Task } from "../driver.ts";
import { syncEdge } from "../edge-sync.ts";
import type { World } from "../world.ts";

/** Keeps the edge running and its routes as the rows say. */
export function edgeTask(world: World): Task {
  return {
    name: "edge",
    periodMs: 2000,
    topics: ["edge"],
    async run() {
      const table = await syncEdge(world);
      return { detail: `${table.routes.length} routes, version ${table.version}` };
    },
  };
}
