import {
  readConnections,
  readOpenRequests,
  readPool,
  type OpenRequests,
  type ServerConnections,
} from "./haproxy-answers.ts";
import { hostMap, openTable } from "./haproxy-settings.ts";
import type { RoutePool } from "./route-pool.ts";
import { callHaproxy } from "./runtime-socket.ts";

/** One worker of HAProxy, and how its runtime API is reached: a replaced one answers through the master alone. */
export interface Worker {
  readonly pid: number;
  readonly socket: string;
  readonly prefix: string;
}

export function askWorker({ socket, prefix }: Worker, command: string): Promise<string> {
  return callHaproxy(socket, prefix + command);
}

/** What a worker serves by, read from itself. */
export async function poolOf(worker: Worker, size: number): Promise<RoutePool> {
  const map = await askWorker(worker, `show map ${hostMap}`);
  return readPool(size, map, await askWorker(worker, "show servers state"));
}

/** Connections of the servers of a worker: of all, or of one backend. */
export async function connectionsOf(worker: Worker, backend = ""): Promise<ServerConnections[]> {
  return readConnections(await askWorker(worker, `show servers conn ${backend}`.trimEnd()));
}

/** What is open to the only replicas of their projects. */
export async function openRequestsOf(worker: Worker): Promise<OpenRequests[]> {
  return readOpenRequests(await askWorker(worker, `show table ${openTable}`));
}
