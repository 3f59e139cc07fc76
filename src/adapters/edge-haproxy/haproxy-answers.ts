import { bracketed } from "./haproxy-settings.ts";
import { poolOf, type PoolServer, type RoutePool } from "./route-pool.ts";

// Parsers for the answers of HAProxy's runtime API (management.txt section 9.3).

/** Builds a worker's pool from its answers to `show map` and `show servers state`. */
export function readPool(size: number, map: string, servers: string): RoutePool {
  const hosts = new Map<string, string>();
  for (const line of map.split("\n")) {
    const [, host, value] = line.split(" ");
    if (host !== undefined && value !== undefined) hosts.set(host, value);
  }
  return poolOf(size, hosts, readServers(servers));
}

function readServers(text: string): Map<string, PoolServer[]> {
  const servers = new Map<string, PoolServer[]>();
  for (const line of text.split("\n")) {
    const words = line.split(" ");
    const [, backend, , name, host, , admin] = words;
    const port = Number(words[18]);
    if (backend === undefined || name === undefined || host === undefined || !Number.isInteger(port)) continue;
    // SRV_ADMF_FMAINT: set by the command `set server … state maint`.
    const list = servers.get(backend) ?? [];
    servers.set(backend, [...list, { name, host, port, ready: Number(admin) === 0 }]);
  }
  return servers;
}

export interface OpenRequests {
  /** `host:port`. */
  readonly target: string;
  readonly used: number;
}

/** Parses the answer to `show table` for keys of the form `host/port`. */
export function readOpenRequests(text: string): OpenRequests[] {
  return Array.from(text.matchAll(/ key=(\S+)\/(\d+) .*conn_cur=(\d+)$/gm), ([, host = "", port, used]) => ({
    target: `${bracketed(host)}:${port}`,
    used: Number(used),
  }));
}

export interface ServerConnections extends OpenRequests {
  /** `backend/server`. */
  readonly server: string;
  readonly idle: number;
}

export function readConnections(text: string): ServerConnections[] {
  return text.split("\n").flatMap((line) => {
    const [server, , host, port, , , used, , , , , , idle] = line.split(" ");
    if (server === undefined || host === undefined || !server.includes("/") || line.startsWith("#")) return [];
    return [{ server, target: `${bracketed(host)}:${port}`, used: Number(used), idle: Number(idle) }];
  });
}

/** Parses the pids of replaced workers from the master's answer to `show proc`. */
export function readOldWorkers(text: string): number[] {
  const old = text.split("# old workers")[1] ?? "";
  return Array.from(old.matchAll(/^(\d+)\s+worker\s/gm), ([, pid]) => Number(pid));
}

export function statusValue(text: string, name: string): string | undefined {
  return new RegExp(`^${name}: (.*)$`, "m").exec(text)?.[1];
}
