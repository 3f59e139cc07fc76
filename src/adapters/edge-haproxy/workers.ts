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

/** One worker of HAProxy and the address of its runtime API: a replaced worker responds only through the master. */
export interface Worker {
  readonly pid: number;
  readonly socket: string;
  readonly prefix: string;
}

export function askWorker({ socket, prefix }: Worker, command: string): Promise<string> {
  return callHaproxy(socket, prefix + command);
}

export async function poolOf(worker: Worker, size: number): Promise<RoutePool> {
  const map = await askWorker(worker, `show map ${hostMap}`);
  return readPool(size, map, await askWorker(worker, "show servers state"));
}

/** Returns the connections of a worker's servers: of all, or of one backend. */
export async function connectionsOf(worker: Worker, backend = ""): Promise<ServerConnections[]> {
  return readConnections(await askWorker(worker, `show servers conn ${backend}`.trimEnd()));
}

/** Returns the number of requests open to projects' single replicas. */
export async function openRequestsOf(worker: Worker): Promise<OpenRequests[]> {
  return readOpenRequests(await askWorker(worker, `show table ${openTable}`));
}
