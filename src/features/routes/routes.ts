import { sql } from "kysely";
import type { Route, RouteState } from "../../ports/edge.ts";
import { changedProjects } from "../../store/changed-projects.ts";
import type { Db } from "../../store/database.ts";
import { createSignal } from "../../store/signal.ts";
import type { Wakeups } from "../../store/wakeups.ts";

/** The routes of one project: its own hostname and its other hostnames. Empty when the project is gone. */
export type ProjectRoutes = ReturnType<typeof routesOf>;

export interface RouteChanges {
  /** The transaction snapshot of this read; the next read returns only what changed after it. */
  readonly snapshot: string;
  readonly projects: readonly ProjectRoutes[];
  /** Addresses (host:port) of replicas that left the routes and may still have open requests. */
  readonly draining: readonly string[];
}

/** Keeps the planner from joining whole tables, which it does while table statistics are out of date. */
const lookedUpOneByOne = sql`limit 1`;

/**
 * Returns the routes of all projects whose route may have changed since the snapshot, or of all projects when `since` is null. The result
 * depends only on the rows. Requests go to the deployment being switched to, else to the active one; there they go to running replicas
 * whose latest start passed its health check, except those that a scale-down will stop.
 */
export async function changedRoutes(db: Db, since: string | null): Promise<RouteChanges> {
  const { rows } = await sql<{ snapshot: string; rows: readonly RouteRow[]; draining: readonly string[] }>`
    with changed as materialized (${changedProjects(since)}),
    routed as (
      select c.project_id, p.hostname,
        case when p.suspended_at is not null then 'suspended' when p.deleted_at is not null then 'deleted'
          when p.maintenance_since is not null then 'maintenance'
          when p.deployment_id is null then 'empty' when p.sleep is not null then 'asleep' else 'serving' end as state, p.maintenance_message,
        (select jsonb_agg(m order by m.hostname) from (
          select d.hostname, t.hostname as redirect_to from domain d
            left join domain t on t.id = d.redirect_id and t.project_id = d.project_id and t.verified_at is not null
            where d.project_id = c.project_id and d.verified_at is not null
          union all select hostname, null from earlier_name where project_id = c.project_id) m where p.hostname is not null) as domains,
        (select jsonb_agg(jsonb_build_object('host', r.host, 'port', r.port) order by r.ordinal) from replica r
          where r.deployment_id = p.deployment_id and r.process = 'web' and r.state = 'running' and r.ready_attempt = r.attempt and r.ordinal < p.replicas) as targets
      from changed c left join lateral (
        select p.hostname, p.deleted_at, p.replicas, p.maintenance_since, p.maintenance_message, p.sleep, o.suspended_at, coalesce(
          (select w.id from deployment w where w.project_id = p.id and w.status = 'starting' and w.switching),
          (select a.id from deployment a where a.project_id = p.id and a.status = 'active')) as deployment_id
        from project p join organization o on o.id = p.org_id
        where p.id = c.project_id and p.purged_at is null
        ${lookedUpOneByOne}) p on true)
    select pg_current_snapshot()::text as snapshot, (select coalesce(jsonb_agg(to_jsonb(routed)), '[]') from routed) as rows,
      (select coalesce(jsonb_agg(host || ':' || port), '[]') from replica where state = 'draining' and host is not null) as draining`.execute(
    db,
  );
  const [found] = rows;
  if (found === undefined) throw new Error("the routes could not be read");
  return { snapshot: found.snapshot, projects: found.rows.map(routesOf), draining: found.draining };
}

interface RouteRow {
  readonly project_id: string;
  readonly hostname: string | null;
  readonly state: RouteState;
  readonly maintenance_message: string | null;
  /** `redirect_to` is null while that name is not served. */
  readonly domains: readonly { readonly hostname: string; readonly redirect_to: string | null }[] | null;
  readonly targets: Route["targets"] | null;
}

function routesOf({ project_id, hostname, domains, ...row }: RouteRow) {
  // Until the replicas are stopped, and as soon as one is ready again.
  const state = row.state === "asleep" && row.targets !== null ? "serving" : row.state;
  const names = hostname === null ? [] : [{ hostname, redirect_to: null }, ...(domains ?? [])];
  const notice = state === "maintenance" && row.maintenance_message !== null ? { notice: row.maintenance_message } : {};
  const rest = { project_id, state, targets: state === "serving" ? (row.targets ?? []) : [], hsts: false, ...notice };
  const routes = names.map(({ hostname: name, redirect_to: to }): Route => {
    const route = { hostname: name, ...rest, https: "off" } as const;
    return to === null ? route : { ...route, redirect_to: { hostname: to, https: false } };
  });
  return { project_id, routes };
}

/** Draws the next version, which is higher than any before it on all control planes. */
export async function nextRouteVersion(db: Db): Promise<number> {
  const row = await sql<{ version: number }>`select nextval('route_version') as version`.execute(db);
  return (row.rows[0] as { version: number }).version;
}

// Far more than are drawn during one statement.
const versionsInAStatement = 1000;

/**
 * Raises the next version above the current time in milliseconds, at the start of a control plane; fewer versions are drawn than
 * milliseconds pass. Otherwise, after a database reset or restore, an edge would ignore new versions because they are older than its own.
 */
export async function raiseRouteVersion(db: Db): Promise<void> {
  await db.transaction().execute(async (tx) => {
    await sql`select pg_advisory_xact_lock(hashtextextended('route_version', 0))`.execute(tx);
    await sql`
      select setval('route_version', wanted) from route_version, (select (extract(epoch from clock_timestamp()) * 1000)::bigint as wanted) as present
      where last_value + ${sql.lit(versionsInAStatement)} < wanted`.execute(tx);
    // A restored database may contain transaction numbers of another server, which would lie in the future here.
    await sql`update route_change set changed_by = pg_current_xact_id() where changed_by > pg_current_xact_id()`.execute(
      tx,
    );
  });
}

/** An edge's state as the control plane on its machine reports it. */
interface EdgeReport {
  readonly id: string;
  readonly machine: string;
  readonly kind: string;
  /** The edge serves everything that was committed before this version was drawn. */
  readonly route_version: number;
  /** The version of the certificates that it serves; 0 before the first. */
  readonly certificate_version: number;
  /** Open requests and tunnels to draining replicas, by host:port. */
  readonly open_requests: Readonly<Record<string, number>>;
}

export async function saveEdge(db: Db, edge: EdgeReport): Promise<void> {
  const report = { ...edge, open_requests: JSON.stringify(edge.open_requests), seen_at: sql<string>`now()` };
  await db
    .insertInto("edge")
    .values(report)
    .onConflict((on) => on.column("id").doUpdateSet(report))
    .execute();
}

/** Removes a stopped edge, so that nothing waits for its confirmation. */
export async function removeEdge(db: Db, id: string): Promise<void> {
  await db.deleteFrom("edge").where("id", "=", id).execute();
}

type Confirmed = "route_version" | "certificate_version";

/** Returns whether all edges seen in the last 10 seconds serve at least this version. */
export async function edgesConfirm(
  db: Db,
  version: number,
  of: Confirmed,
): Promise<"confirmed" | "behind" | "no_edge"> {
  const { rows } = await sql<{ live: number; behind: number }>`
    select count(*)::integer as live, count(*) filter (where ${sql.ref(of)} < ${version})::integer as behind
    from edge where seen_at > now() - interval '10 seconds'`.execute(db);
  const { live, behind } = rows[0] as { live: number; behind: number };
  if (live === 0) return "no_edge";
  return behind === 0 ? "confirmed" : "behind";
}

/** Returns whether a live edge has requests open to one of these targets (host:port). */
export async function hasOpenRequests(db: Db, targets: readonly string[]): Promise<boolean> {
  const { rows } = await sql`
    select 1 from edge, jsonb_each_text(open_requests) as open(target, count)
    where seen_at > now() - interval '10 seconds' and target = any(${targets}) and count::integer > 0 limit 1`.execute(
    db,
  );
  return rows.length > 0;
}

interface AwaitEdges {
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
  /** Defaults to the routes. */
  readonly of?: Confirmed;
}

/**
 * Waits until every live edge serves what was committed before this call. The version is drawn after those commits, and an edge draws its
 * own version before it reads the rows, so an edge that reports at least this version has read them.
 */
export async function awaitEdges(
  { db, wakeups }: { readonly db: Db; readonly wakeups: Pick<Wakeups, "on" | "send"> },
  { timeoutMs, signal, of = "route_version" }: AwaitEdges,
): Promise<"confirmed" | "behind" | "no_edge"> {
  const reports = createSignal(wakeups, ["edges"]);
  const endMs = performance.now() + timeoutMs;
  try {
    const version = await nextRouteVersion(db);
    await wakeups.send(db, "edge");
    for (;;) {
      const state = await edgesConfirm(db, version, of);
      const leftMs = endMs - performance.now();
      if (state === "confirmed" || leftMs <= 0 || signal?.aborted) return state;
      await reports.wait(Math.min(leftMs, pollMs), signal);
    }
  } finally {
    reports.stop();
  }
}

const pollMs = 250;
