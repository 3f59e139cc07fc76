import type { Route, RouteTable, Target } from "../../ports/edge.ts";
import type { PageCode } from "../../ports/edge-pages.ts";
import { bracketed, challengeBackend, hostMap } from "./haproxy-settings.ts";

/** What one HAProxy worker serves: which backend belongs to which project, its servers, and the map from hostname to backend. */
export interface RoutePool {
  /** Number of backends in its configuration: `b1` … `b<size>`. */
  readonly size: number;
  /** Entries of the host map. */
  readonly hosts: Map<string, string>;
  /** Servers by backend. A server is never deleted: another target gets its place once nothing is open to it. */
  readonly servers: Map<string, PoolServer[]>;
}

export interface PoolServer {
  readonly name: string;
  readonly host: string;
  readonly port: number;
  /** Gets new requests; otherwise it only ends those that are open. */
  readonly ready: boolean;
}

/** Commands of HAProxy's runtime API (management.txt §9.3), and the pool once they are done. */
export interface PoolChange {
  readonly commands: readonly string[];
  readonly next: RoutePool;
}

/** The key of the host map that holds the version of the table in force: no `Host` leads to it, since a colon ends a hostname. */
export const versionKey = ":version";

/** The key that holds the version of the certificates, likewise. */
export const certificateVersionKey = ":certificates";

/** A pool without routes. */
export function emptyPool(size: number, certificateVersion = 0): RoutePool {
  const versions: [string, string][] = [
    [versionKey, "-1"],
    [certificateVersionKey, `${certificateVersion}`],
  ];
  return { size, hosts: new Map(versions), servers: new Map() };
}

/** The version of the table that a pool serves by. */
export function versionOf(pool: RoutePool): number {
  return Number(pool.hosts.get(versionKey) ?? -1);
}

/** Backends that a table needs: one a project. */
export function backendsOf(table: RouteTable): number {
  return new Set(table.routes.map((route) => route.project_id)).size;
}

/**
 * What must be done so that a worker serves `table`; undefined when it has too few backends. `busy` names the servers, as `backend/server`, that
 * something is still open to. Servers are added before the hosts change and closed to new requests afterwards: no request finds neither.
 */
export function changePool(pool: RoutePool, table: RouteTable, busy: ReadonlySet<string>): PoolChange | undefined {
  const backends = assignBackends(pool, table);
  if (backends === undefined) return undefined;
  const targets = targetsOf(table, backends);
  const [openings, closings] = [[] as string[], [] as string[]];
  const servers = new Map(pool.servers);
  for (const backend of new Set([...servers.keys(), ...targets.keys()])) {
    const change = changeServers(backend, servers.get(backend) ?? [], targets.get(backend) ?? [], busy);
    if (change.next.length > 0) servers.set(backend, change.next);
    openings.push(...change.openings);
    closings.push(...change.closings);
  }
  const hosts = new Map([
    [versionKey, `${table.version}`],
    [certificateVersionKey, pool.hosts.get(certificateVersionKey) ?? "0"],
  ]);
  for (const route of table.routes)
    hosts.set(route.hostname, hostValue(route, backends.get(route.project_id) as string));
  return {
    commands: [...openings, ...changeHosts(pool.hosts, hosts), ...closings],
    next: { size: pool.size, hosts, servers },
  };
}

/** The part of a table whose projects have a backend in this pool. */
export function knownPart(pool: RoutePool, table: RouteTable): RouteTable {
  const known = new Set(Array.from(pool.hosts.values(), (value) => value.split("/")[3]));
  return { ...table, routes: table.routes.filter(({ project_id }) => known.has(project_id)) };
}

/** What the host map holds for a route: backend, flags, page, project. HAProxy reads the parts with `field(n,/)`. */
function hostValue(route: Route, backend: string): string {
  const flags = `${route.https === "redirect" ? "R" : ""}${route.https === "off" ? "P" : ""}${route.hsts ? "H" : ""}`;
  return [backend, flags || "-", pageOf(route) ?? "", route.project_id].join("/");
}

function pageOf(route: Route): PageCode | undefined {
  if (route.state !== "serving") return route.state === "empty" ? "nothing_deployed" : route.state;
  return route.targets.length === 0 ? "app_not_running" : undefined;
}

/** Projects keep their backend; new ones get one that no host leads to. */
function assignBackends(pool: RoutePool, table: RouteTable): Map<string, string> | undefined {
  const before = new Map<string, string>();
  for (const value of pool.hosts.values()) {
    const [backend, , , project] = value.split("/");
    if (project !== undefined) before.set(project, backend as string);
  }
  const assigned = new Map<string, string>();
  const waiting: string[] = [];
  for (const { project_id } of table.routes) {
    const backend = before.get(project_id);
    if (backend !== undefined) assigned.set(project_id, backend);
    else waiting.push(project_id);
  }
  const taken = new Set(before.values());
  let number = 0;
  for (const project of new Set(waiting)) {
    do number += 1;
    while (taken.has(`b${number}`));
    if (number > pool.size) return undefined;
    assigned.set(project, `b${number}`);
  }
  return assigned;
}

function targetsOf(table: RouteTable, backends: ReadonlyMap<string, string>): Map<string, Target[]> {
  const found = new Map<string, Target[]>();
  if (table.challenge !== null) found.set(challengeBackend, [table.challenge]);
  for (const { project_id, targets } of table.routes) {
    const backend = backends.get(project_id) as string;
    const known = found.get(backend);
    if (known === undefined) found.set(backend, [...targets]);
    else known.push(...targets.filter((target) => !known.some((each) => isAt(each, target))));
  }
  return found;
}

function changeServers(
  backend: string,
  now: readonly PoolServer[],
  wanted: readonly Target[],
  busy: ReadonlySet<string>,
) {
  const next = now.map((server) => ({ ...server, ready: wanted.some((target) => isAt(server, target)) }));
  const openings: string[] = [];
  for (const target of wanted) {
    const at = next.findIndex((server) => isAt(server, target));
    if (at !== -1) {
      if (now[at]?.ready !== true) openings.push(`set server ${backend}/${next[at]?.name} state ready`);
      continue;
    }
    const free = next.findIndex((each) => isFree(each, now, busy, backend));
    const name = free === -1 ? `s${next.length + 1}` : (next[free]?.name as string);
    next.splice(free === -1 ? next.length : free, 1, { name, ...address(target), ready: true });
    openings.push(...openServer(`${backend}/${name}`, target, free === -1));
  }
  const left = now.filter((server) => server.ready && !next.some((each) => each.name === server.name && each.ready));
  return { next, openings, closings: left.map((server) => `set server ${backend}/${server.name} state maint`) };
}

/** Closed to new requests before this change already, and nothing is open to it. */
function isFree(server: PoolServer, now: readonly PoolServer[], busy: ReadonlySet<string>, backend: string): boolean {
  const wasClosed = now.some((each) => each.name === server.name && !each.ready);
  return wasClosed && !server.ready && !busy.has(`${backend}/${server.name}`);
}

function openServer(server: string, { host, port }: Target, isNew: boolean): string[] {
  const place = isNew
    ? `add server ${server} ${bracketed(host)}:${port}`
    : `set server ${server} addr ${host} port ${port}`;
  return [place, `set server ${server} state ready`];
}

function changeHosts(before: ReadonlyMap<string, string>, after: ReadonlyMap<string, string>): string[] {
  const commands: string[] = [];
  for (const [host, value] of after) {
    const old = before.get(host);
    if (old === undefined) commands.push(`add map ${hostMap} ${host} ${value}`);
    else if (old !== value) commands.push(`set map ${hostMap} ${host} ${value}`);
  }
  for (const host of before.keys()) if (!after.has(host)) commands.push(`del map ${hostMap} ${host}`);
  return commands;
}

function isAt(one: Target, other: Target): boolean {
  return one.port === other.port && one.host === other.host;
}

function address({ host, port }: Target): Target {
  return { host, port };
}

/** The file of the host map. */
export function hostMapText(pool: RoutePool): string {
  return Array.from(pool.hosts, ([host, value]) => `${host} ${value}\n`).join("");
}
