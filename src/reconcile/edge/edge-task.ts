import type { Task } from "../driver.ts";
import { syncEdge } from "./edge-sync.ts";
import type { Platform } from "../platform.ts";

/** Keeps the edge running and its routes as the rows say. */
export function edgeTask(platform: Platform): Task {
  return {
    name: "edge",
    periodMs: 2000,
    topics: ["edge"],
    async run() {
      const table = await syncEdge(platform);
      return { detail: `${table.routes.length} routes, version ${table.version}` };
    },
  };
}
