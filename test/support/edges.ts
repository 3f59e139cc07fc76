import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { HaproxyEdgeOptions } from "../../src/adapters/edge-haproxy/haproxy-edge-options.ts";
import { createHaproxyEdge, type HaproxyEdge } from "../../src/adapters/edge-haproxy/haproxy-edge.ts";
import { testOptions, withoutHaproxy } from "./haproxy.ts";

export { withoutHaproxy };

/** Creates an edge on loopback. Port 0 means any free port; without a TLS port there is no HTTPS. */
export function createTestEdge(
  options: Pick<HaproxyEdgeOptions, "stateDir"> & Partial<HaproxyEdgeOptions>,
): HaproxyEdge {
  return createHaproxyEdge({ ...testOptions, listenTlsPort: null, ...options });
}

/** The main process of the edge with this state folder. */
export function edgePid(stateDir: string): number {
  const record = readFileSync(join(stateDir, "current.json"), "utf8");
  return (JSON.parse(record) as { identity: { pid: number } }).identity.pid;
}

/** The worker, which serves requests: the main process only supervises it. */
export function servingPid(stateDir: string): number {
  const pid = edgePid(stateDir);
  return Number(readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(" ").at(-1));
}
