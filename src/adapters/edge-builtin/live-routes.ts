import type { Route, RouteHttps, RouteState, RouteTable, Target } from "../../ports/edge.ts";
import { byName, type RouteChanges } from "./route-changes.ts";
import { ProjectLoad } from "./project-load.ts";
import { EdgeTarget, targetKey } from "./target.ts";
import { ProjectUsage, type UsageBook } from "./usage.ts";

/** A route as the hot path uses it. */
export interface LiveRoute {
  readonly state: RouteState;
  readonly https: RouteHttps;
  readonly hsts: boolean;
  readonly isControl: boolean;
  readonly notice: string | undefined;
  readonly targets: readonly EdgeTarget[];
  readonly usage: ProjectUsage;
  readonly load: ProjectLoad;
  /** Where the search among equally loaded replicas starts; advances with each request. */
  turn: number;
}

/** The active routes and all replicas that still have open requests. */
export class LiveRoutes {
  version = -1;
  /** The route of certificate authorities' challenges, which are not counted. */
  challenge: LiveRoute | undefined;
  #table: RouteTable = { version: -1, routes: [], challenge: null };
  #routes = new Map<string, LiveRoute>();
  #loads = new Map<string, ProjectLoad>();
  readonly #targets = new Map<string, EdgeTarget>();
  readonly #usage: UsageBook;

  constructor(usage: UsageBook) {
    this.#usage = usage;
  }

  find(hostname: string): LiveRoute | undefined {
    return this.#routes.get(hostname);
  }

  /** Activates a table; returns false when it is not newer than the active one. Open requests stay with their replica. */
  apply(table: RouteTable): boolean {
    if (table.version <= this.version) return false;
    const routes = new Map<string, LiveRoute>();
    const loads = new Map<string, ProjectLoad>();
    const named = new Set<string>();
    for (const route of table.routes) {
      const load = loads.get(route.project_id) ?? this.#loads.get(route.project_id) ?? new ProjectLoad();
      loads.set(route.project_id, load);
      const targets = route.targets.map((target) => this.#target(target.host, target.port, named));
      routes.set(route.hostname, {
        state: route.state,
        https: route.https,
        hsts: route.hsts,
        isControl: route.is_control ?? false,
        notice: route.notice,
        targets,
        usage: this.#usage.of(route.project_id),
        load,
        turn: this.#turn(route),
      });
    }
    this.challenge = table.challenge ? this.#challengeRoute(table.challenge, named) : undefined;
    this.#table = table;
    this.#routes = routes;
    this.#loads = loads;
    this.version = table.version;
    this.#retire(named);
    return true;
  }

  /** Applies changes if the active version is `from`; returns the version that is active afterwards. */
  change({ from, version, changed, removed }: RouteChanges): number {
    if (this.version !== from || version <= from) return this.version;
    const { challenge } = this.#table;
    const known = new Map(byName(this.#table.routes));
    for (const hostname of removed) known.delete(hostname);
    for (const route of changed) known.set(route.hostname, route);
    if (changed.length + removed.length === 0) this.version = version;
    else this.apply({ version, challenge, routes: [...known.values()] });
    return this.version;
  }

  /** Returns the number of open requests by target, without targets that have none. */
  open(): Record<string, number> {
    const counts: Record<string, number> = {};
    for (const target of this.#targets.values()) if (target.open > 0) counts[target.key] = target.open;
    return counts;
  }

  /** Closes connections that have been idle for long, and removes retired targets without open requests. */
  sweep(nowMs: number): void {
    for (const target of this.#targets.values()) {
      target.sweep(nowMs);
      if (target.retired && target.open === 0) this.#targets.delete(target.key);
    }
  }

  #challengeRoute({ host, port }: Target, named: Set<string>): LiveRoute {
    const targets = [this.#target(host, port, named)];
    const uncounted = { usage: new ProjectUsage(""), load: this.challenge?.load ?? new ProjectLoad() };
    return {
      state: "serving",
      https: "on",
      hsts: false,
      isControl: false,
      notice: undefined,
      targets,
      turn: 0,
      ...uncounted,
    };
  }

  #turn(route: Route): number {
    return this.#routes.get(route.hostname)?.turn ?? 0;
  }

  #target(host: string, port: number, named: Set<string>): EdgeTarget {
    const key = targetKey(host, port);
    named.add(key);
    let target = this.#targets.get(key);
    if (target === undefined) this.#targets.set(key, (target = new EdgeTarget(host, port)));
    target.retired = false;
    return target;
  }

  #retire(named: ReadonlySet<string>): void {
    for (const target of this.#targets.values()) if (!target.retired && !named.has(target.key)) target.retire();
  }
}
