import type { Route, RouteHttps, RouteState, RouteTable, Target } from "../../ports/edge.ts";
import type { RouteChanges } from "./route-changes.ts";
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
  readonly #routes = new Map<string, LiveRoute>();
  readonly #loads = new Map<string, ProjectLoad>();
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
    const named = new Set(table.routes.map(({ hostname }) => hostname));
    const removed = [...this.#routes.keys()].filter((hostname) => !named.has(hostname));
    const challenges = this.challenge === undefined ? [] : [this.challenge];
    this.challenge = table.challenge ? this.#challengeRoute(table.challenge) : undefined;
    this.#replace(table.routes, removed, challenges);
    this.version = table.version;
    return true;
  }

  /** Applies changes if the active version is `from`; returns the version that is active afterwards. */
  change({ from, version, changed, removed }: RouteChanges): number {
    if (this.version !== from || version <= from) return this.version;
    this.#replace(changed, removed, []);
    this.version = version;
    return version;
  }

  /** Takes time for what changes; of other routes it only reads which replicas and projects they name. */
  #replace(changed: readonly Route[], removed: readonly string[], others: readonly LiveRoute[]): void {
    const replaced = [...others];
    for (const hostname of [...removed, ...changed.map((route) => route.hostname)]) {
      const route = this.#routes.get(hostname);
      if (route !== undefined) replaced.push(route);
    }
    for (const hostname of removed) this.#routes.delete(hostname);
    for (const route of changed) this.#routes.set(route.hostname, this.#live(route));
    if (replaced.length > 0) this.#retireUnnamed(replaced);
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

  #live(route: Route): LiveRoute {
    const load = this.#loads.get(route.project_id) ?? new ProjectLoad();
    this.#loads.set(route.project_id, load);
    return {
      state: route.state,
      https: route.https,
      hsts: route.hsts,
      isControl: route.is_control ?? false,
      notice: route.notice,
      targets: route.targets.map((target) => this.#target(target.host, target.port)),
      usage: this.#usage.of(route.project_id),
      load,
      turn: this.#routes.get(route.hostname)?.turn ?? 0,
    };
  }

  #challengeRoute({ host, port }: Target): LiveRoute {
    const targets = [this.#target(host, port)];
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

  #target(host: string, port: number): EdgeTarget {
    const key = targetKey(host, port);
    let target = this.#targets.get(key);
    if (target === undefined) this.#targets.set(key, (target = new EdgeTarget(host, port)));
    target.retired = false;
    return target;
  }

  /** Retires the targets of replaced routes, and forgets their projects' load, where no route names them any more. */
  #retireUnnamed(replaced: readonly LiveRoute[]): void {
    const targets = new Set(replaced.flatMap((route) => route.targets));
    const projects = new Set(replaced.map(({ usage }) => usage.projectId));
    const kept = this.challenge === undefined ? [] : [this.challenge];
    for (const routes of [this.#routes.values(), kept])
      for (const { targets: named, usage } of routes) {
        for (const target of named) targets.delete(target);
        projects.delete(usage.projectId);
      }
    for (const target of targets) target.retire();
    for (const project of projects) this.#loads.delete(project);
  }
}
