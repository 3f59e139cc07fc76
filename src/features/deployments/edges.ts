import { sql } from "kysely";
import type { Db } from "../../store/database.ts";
import { createSignal } from "../../store/signal.ts";
import type { Wakeups } from "../../store/wakeups.ts";
import { nextRouteVersion } from "./routes.ts";

/** An edge's state as the control plane on its machine reports it. */
export interface EdgeReport {
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

export type Confirmed = "route_version" | "certificate_version";

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
