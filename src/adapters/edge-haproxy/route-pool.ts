import { isIP } from "node:net";
import type { Route, RouteTable, Target } from "../../ports/edge.ts";
import type { PageCode } from "../../ports/edge-pages.ts";
import { noticeValue } from "./page-files.ts";
import { bracketed, challengeBackend, hostMap, kinds, pagesBackend } from "./haproxy-settings.ts";

/**
 * The state of one HAProxy worker: the map from hostname to route, and the backends of projects with several replicas. A project with one
 * replica needs no backend of its own: the map names the replica, and all such projects share one backend.
 */
export interface RoutePool {
  /** The number of backends in the worker's configuration: `b1` … `b<size>`. */
  readonly size: number;
  readonly hosts: ReadonlyMap<string, string>;
  /** Servers by backend. A server is never deleted; once nothing is open to it, another target can reuse it. */
  readonly servers: ReadonlyMap<string, readonly PoolServer[]>;
  /** Backends by project, for projects that have one. */
  readonly backends: ReadonlyMap<string, string>;
  /** Routes by hostname, as in the last table: an identical object needs no comparison. Empty after a restart. */
  readonly routes: ReadonlyMap<string, Route>;
}

export interface PoolServer {
  readonly name: string;
  readonly host: string;
  readonly port: number;
  /** True if the server gets new requests; otherwise it only finishes open ones. */
  readonly ready: boolean;
}

/** Commands of HAProxy's runtime API (management.txt §9.3), and the pool after they have run. */
export interface PoolChange {
  readonly commands: readonly string[];
  readonly next: RoutePool;
}

/** The host map key of the active table's version. No `Host` matches it, because a colon ends a hostname. */
const versionKey = ":version";

export const certificateVersionKey = ":certificates";

/** The host map key of the format in which this code writes the map's values; a worker of an earlier version has another or none. */
const formKey = ":form";
const form = "3";

export function emptyPool(size: number, certificateVersion = 0): RoutePool {
  const own: [string, string][] = [
    [versionKey, "-1"],
    [certificateVersionKey, `${certificateVersion}`],
    [formKey, form],
  ];
  return poolOf(size, new Map(own), new Map());
}

/** Returns whether the worker's configuration understands the values that this code writes to its map. */
export function isOfThisForm(pool: RoutePool): boolean {
  return pool.hosts.get(formKey) === form;
}

/** Builds a pool from what its worker reports. */
export function poolOf(size: number, hosts: RoutePool["hosts"], servers: RoutePool["servers"]): RoutePool {
  const backends = new Map<string, string>();
  for (const value of hosts.values()) {
    const { backend, project } = partsOf(value);
    if (backend !== undefined) backends.set(project, backend);
  }
  return { size, hosts, servers, backends, routes: new Map() };
}

export function versionOf(pool: RoutePool): number {
  return Number(pool.hosts.get(versionKey) ?? -1);
}

/** Returns the number of backends that a table needs: one for each project with several replicas. */
export function backendsOf(table: RouteTable): number {
  return new Set(table.routes.filter(needsBackend).map((route) => route.project_id)).size;
}

/** Returns whether a route needs a backend of its own: to balance over several servers, or to resolve a host name. */
function needsBackend(route: Route): boolean {
  if (route.redirect_to !== undefined || pageOf(route) !== undefined) return false;
  return route.targets.length > 1 || route.targets.some(({ host }) => isIP(host) === 0);
}

/** Servers, as `backend/server`, that still have open connections. */
export type Busy = Pick<ReadonlySet<string>, "has">;

export function backendsToGrow(commands: readonly string[]): readonly string[] {
  const named = commands.map((command) => /^add server ([^/]+)\//.exec(command)?.[1]);
  return [...new Set(named.filter((backend) => backend !== undefined))];
}

/** Computes the change after which a worker serves `table`; undefined with too few backends. A request finds a server at every step. */
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
    // Computed lazily: it copies thousands of entries.
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

function goneHosts(pool: RoutePool, table: RouteTable, changed: readonly Route[]): string[] {
  const added = changed.filter((route) => !pool.hosts.has(route.hostname)).length;
  if (pool.hosts.size - ownKeys + added === table.routes.length) return [];
  const named = new Set(table.routes.map((route) => route.hostname));
  return [...pool.hosts.keys()].filter((host) => !named.has(host) && !host.startsWith(":"));
}

const ownKeys = 3;

/** Returns the part of a table that this pool can serve without further backends. */
export function knownPart(pool: RoutePool, table: RouteTable): RouteTable {
  const routes = table.routes.filter((route) => !needsBackend(route) || pool.backends.has(route.project_id));
  return { ...table, routes };
}

/**
 * Returns the host map value of a route: flags, the project to count for, then the only replica's host and port, or a backend. The pages
 * backend is followed by the page, with its notice as html, json and text after `|`, or by `moved` with the scheme and the hostname to
 * redirect to. The first flag tells these apart.
 */
function hostValue(route: Route, backend: string | undefined): string {
  const { redirect_to: other } = route;
  const toHttps = route.https === "redirect" && other === undefined;
  const flags = `${toHttps ? "R" : route.https === "off" ? "P" : "-"}${route.hsts ? "H" : "-"}${route.is_control ? "C" : "-"}`;
  if (other !== undefined)
    return [
      `${kinds.page}${flags}`,
      route.project_id,
      pagesBackend,
      "moved",
      other.https ? "https" : "http",
      other.hostname,
    ].join("/");
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

// Linux connects these to the machine itself.
const unspecified: ReadonlySet<string> = new Set(["0.0.0.0", "::"]);

function partsOf(value: string): { readonly backend: string | undefined; readonly project: string } {
  const [flags = "", project = "", backend] = value.split("/");
  return { backend: flags.startsWith(kinds.balanced) ? backend : undefined, project };
}

/** Assigns backends: a project keeps its backend while it needs one; others get a backend that no project has or has just had. */
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
  // Backends that this change releases are not reused yet: requests routed before the change still go there.
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

/** Returns the targets of every backend that may change, also of projects without a need for theirs, for requests that were just routed. */
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

/** Returns whether a server can be reused: it was closed to new requests before this change, and nothing is open to it. */
function isFree(server: PoolServer, now: readonly PoolServer[], busy: Busy, backend: string): boolean {
  const wasClosed = now.some((each) => each.name === server.name && !each.ready);
  return wasClosed && !server.ready && !busy.has(`${backend}/${server.name}`);
}

/**
 * Marks a server down after one refused connection until it accepts again, so that a request does not meet two refusing servers in turn,
 * such as replicas of a lost machine. Anything else that closes a server comes from the routes.
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
