import { isIP } from "node:net";
import type { Route, RouteTable, Target } from "../../ports/edge.ts";
import type { PageCode } from "../../ports/edge-pages.ts";
import { noticeValue } from "./page-files.ts";
import { bracketed, challengeBackend, hostMap, kinds, pagesBackend } from "./haproxy-settings.ts";

/**
 * What one HAProxy worker serves: the map from hostname to where its requests go, and the backends of projects with several replicas. A
 * project with one replica needs none: the map names the replica, and all of them share one backend.
 */
export interface RoutePool {
  /** Number of backends in its configuration: `b1` … `b<size>`. */
  readonly size: number;
  /** Entries of the host map. */
  readonly hosts: ReadonlyMap<string, string>;
  /** Servers by backend. A server is never deleted: another target gets its place once nothing is open to it. */
  readonly servers: ReadonlyMap<string, readonly PoolServer[]>;
  /** Backends by project, of those that have one. */
  readonly backends: ReadonlyMap<string, string>;
  /** Routes by hostname, as the last table held them: the very same object again needs no second look. Empty after a new start. */
  readonly routes: ReadonlyMap<string, Route>;
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
const versionKey = ":version";

/** The key that holds the version of the certificates, likewise. */
export const certificateVersionKey = ":certificates";

/** The key that says how this code writes the values of the map; a worker that an earlier version configured has another or none. */
const formKey = ":form";
const form = "2";

/** A pool without routes. */
export function emptyPool(size: number, certificateVersion = 0): RoutePool {
  const own: [string, string][] = [
    [versionKey, "-1"],
    [certificateVersionKey, `${certificateVersion}`],
    [formKey, form],
  ];
  return poolOf(size, new Map(own), new Map());
}

/** Whether a worker's configuration understands what this code would write into its map. */
export function isOfThisForm(pool: RoutePool): boolean {
  return pool.hosts.get(formKey) === form;
}

/** A pool by what its worker says of itself. */
export function poolOf(size: number, hosts: RoutePool["hosts"], servers: RoutePool["servers"]): RoutePool {
  const backends = new Map<string, string>();
  for (const value of hosts.values()) {
    const { backend, project } = partsOf(value);
    if (backend !== undefined) backends.set(project, backend);
  }
  return { size, hosts, servers, backends, routes: new Map() };
}

/** The version of the table that a pool serves by. */
export function versionOf(pool: RoutePool): number {
  return Number(pool.hosts.get(versionKey) ?? -1);
}

/** Backends that a table needs: one for each project with several replicas. */
export function backendsOf(table: RouteTable): number {
  return new Set(table.routes.filter(needsBackend).map((route) => route.project_id)).size;
}

/** HAProxy balances over the servers of a backend, and resolves only what a server names. */
function needsBackend(route: Route): boolean {
  return (
    pageOf(route) === undefined && (route.targets.length > 1 || route.targets.some(({ host }) => isIP(host) === 0))
  );
}

/** Servers, as `backend/server`, that something is still open to. */
export type Busy = Pick<ReadonlySet<string>, "has">;

/** The backends that these commands add a server to. */
export function backendsToGrow(commands: readonly string[]): readonly string[] {
  const named = commands.map((command) => /^add server ([^/]+)\//.exec(command)?.[1]);
  return [...new Set(named.filter((backend) => backend !== undefined))];
}

/**
 * What must be done so that a worker serves `table`; undefined when it has too few backends. Servers are added before the hosts change and
 * closed to new requests afterwards: no request finds neither.
 */
export function changePool(pool: RoutePool, table: RouteTable, busy: Busy): PoolChange | undefined {
  const changed = table.routes.filter((route) => pool.routes.get(route.hostname) !== route);
  const gone = goneHosts(pool, table, changed);
  const affected = new Set(changed.map((route) => route.project_id));
  for (const host of gone) affected.add(partsOf(pool.hosts.get(host) as string).project);
  const routes = table.routes.filter((route) => affected.has(route.project_id));
  const backends = assignBackends(pool, affected, routes);
  if (backends === undefined) return undefined;
  const servers = changeServers(pool, targetsOf({ ...table, routes }, pool, affected, backends), busy);
  const hosts = changeHosts(
    pool,
    table.version,
    gone,
    changed.map((route) => [route.hostname, hostValue(route, backends.get(route.project_id))]),
  );
  const byHost = changed.map((route) => [route.hostname, route] as const);
  return {
    commands: [...servers.openings, ...hosts.commands, ...servers.closings],
    // Only made when it is asked for: it copies thousands of entries.
    get next() {
      return {
        ...{ size: pool.size, backends },
        hosts: changedMap(pool.hosts, hosts.changed, gone),
        servers: changedMap(pool.servers, servers.changed, []),
        routes: changedMap(pool.routes, byHost, gone),
      };
    },
  };
}

function changedMap<T>(
  before: ReadonlyMap<string, T>,
  changed: readonly (readonly [string, T])[],
  gone: readonly string[],
): ReadonlyMap<string, T> {
  const next = new Map(before);
  for (const key of gone) next.delete(key);
  for (const [key, value] of changed) next.set(key, value);
  return next;
}

/** Hosts that the table does not name any more. */
function goneHosts(pool: RoutePool, table: RouteTable, changed: readonly Route[]): string[] {
  const added = changed.filter((route) => !pool.hosts.has(route.hostname)).length;
  if (pool.hosts.size - ownKeys + added === table.routes.length) return [];
  const named = new Set(table.routes.map((route) => route.hostname));
  return [...pool.hosts.keys()].filter((host) => !named.has(host) && !host.startsWith(":"));
}

const ownKeys = 3;

/** The part of a table that this pool, which gets no further backends, can serve. */
export function knownPart(pool: RoutePool, table: RouteTable): RouteTable {
  const routes = table.routes.filter((route) => !needsBackend(route) || pool.backends.has(route.project_id));
  return { ...table, routes };
}

/**
 * What the host map holds for a route: flags, the project that it counts for, then the only replica's host and port, or a backend; behind that
 * of the edge's own answers comes the page, with its notice as html, json and text behind `|`. The first flag says which of these it is.
 */
function hostValue(route: Route, backend: string | undefined): string {
  const flags = `${route.https === "on" ? "-" : route.https === "redirect" ? "R" : "P"}${route.hsts ? "H" : "-"}${route.is_control ? "C" : "-"}`;
  const page = pageOf(route);
  if (page !== undefined) {
    const counted = page === "maintenance" ? "" : route.project_id;
    const notice = route.notice === undefined ? "" : `|${noticeValue(route.notice)}`;
    return [`${kinds.page}${flags}`, counted, pagesBackend, `${page}${notice}`].join("/");
  }
  if (backend !== undefined) return [`${kinds.balanced}${flags}`, route.project_id, backend].join("/");
  const { host, port } = route.targets[0] as Target;
  return [`${kinds.single}${flags}`, route.project_id, host, port].join("/");
}

function pageOf(route: Route): PageCode | undefined {
  if (route.state !== "serving") return route.state === "empty" ? "nothing_deployed" : route.state;
  return route.targets.every(({ host }) => unspecified.has(host)) ? "app_not_running" : undefined;
}

// The kernel takes them for this machine itself.
const unspecified: ReadonlySet<string> = new Set(["0.0.0.0", "::"]);

function partsOf(value: string): { readonly backend: string | undefined; readonly project: string } {
  const [flags = "", project = "", backend] = value.split("/");
  return { backend: flags.startsWith(kinds.balanced) ? backend : undefined, project };
}

/** Projects keep their backend for as long as they need one; others get one that no project has or had. */
function assignBackends(
  pool: RoutePool,
  affected: ReadonlySet<string>,
  routes: readonly Route[],
): ReadonlyMap<string, string> | undefined {
  const present = new Set(routes.filter(needsBackend).map((route) => route.project_id));
  const isSame = [...affected].every((project) => present.has(project) === pool.backends.has(project));
  if (isSame) return pool.backends;
  const backends = new Map(pool.backends);
  for (const project of affected) if (!present.has(project)) backends.delete(project);
  // Requests that were looked up before this change still go to those that are left by it.
  const taken = new Set([...pool.backends.values(), ...backends.values()]);
  let number = 0;
  for (const project of present) {
    if (backends.has(project)) continue;
    do number += 1;
    while (taken.has(`b${number}`));
    if (number > pool.size) return undefined;
    backends.set(project, `b${number}`);
  }
  return backends;
}

/** The targets of every backend that may change. A request that has just looked its project up still finds a replica there. */
function targetsOf(
  table: RouteTable,
  pool: RoutePool,
  affected: ReadonlySet<string>,
  backends: ReadonlyMap<string, string>,
) {
  const found = new Map<string, Target[]>([[challengeBackend, table.challenge === null ? [] : [table.challenge]]]);
  for (const project of affected) {
    const before = pool.backends.get(project);
    if (before !== undefined) found.set(before, []);
  }
  for (const { project_id, targets } of table.routes) {
    const backend = backends.get(project_id) ?? pool.backends.get(project_id);
    if (backend === undefined) continue;
    const known = found.get(backend);
    if (known === undefined) found.set(backend, [...targets]);
    else known.push(...targets.filter((target) => !known.some((each) => isAt(each, target))));
  }
  return found;
}

function changeServers(pool: RoutePool, targets: ReadonlyMap<string, readonly Target[]>, busy: Busy) {
  const changed: [string, readonly PoolServer[]][] = [];
  const [openings, closings] = [[] as string[], [] as string[]];
  for (const [backend, wanted] of targets) {
    const change = changeBackend(backend, pool.servers.get(backend) ?? [], wanted, busy);
    if (change.next.length > 0) changed.push([backend, change.next]);
    openings.push(...change.openings);
    closings.push(...change.closings);
  }
  return { changed, openings, closings };
}

function changeBackend(backend: string, now: readonly PoolServer[], wanted: readonly Target[], busy: Busy) {
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
function isFree(server: PoolServer, now: readonly PoolServer[], busy: Busy, backend: string): boolean {
  const wasClosed = now.some((each) => each.name === server.name && !each.ready);
  return wasClosed && !server.ready && !busy.has(`${backend}/${server.name}`);
}

/**
 * A server that refuses one connection gets none until it accepts again, so that no request meets two of them in turn, as replicas of a lost
 * machine are. Whatever else closes a server, the routes say.
 */
export const serverWatch =
  "check inter 10s downinter 500ms fall 100 rise 1 observe layer4 error-limit 1 on-error mark-down";

function openServer(server: string, { host, port }: Target, isNew: boolean): string[] {
  const places = isNew
    ? [`add server ${server} ${bracketed(host)}:${port} ${serverWatch}`, `enable health ${server}`]
    : [`set server ${server} addr ${host} port ${port}`];
  return [...places, `set server ${server} state ready`];
}

function changeHosts(
  pool: RoutePool,
  version: number,
  gone: readonly string[],
  values: readonly (readonly [string, string])[],
) {
  const changed = [[versionKey, `${version}`] as const, ...values];
  const commands: string[] = [];
  for (const [host, value] of changed) {
    const old = pool.hosts.get(host);
    if (old === undefined) commands.push(`add map ${hostMap} ${host} ${value}`);
    else if (old !== value) commands.push(`set map ${hostMap} ${host} ${value}`);
  }
  for (const host of gone) commands.push(`del map ${hostMap} ${host}`);
  return { changed, commands };
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
