import { sql } from "kysely";
import { linkSignals } from "../kit/link-signals.ts";
import { isKnownDead } from "../kit/processes.ts";
import type { Db, Tx } from "./database.ts";

/** The tables whose rows are work that one process at a time may do. */
export type LeasedTable =
  | "build"
  | "deployment"
  | "run"
  | "project_database"
  | "backup_operation"
  | "cron_run"
  | "notification"
  | "certificate"
  | "project_purge"
  | "webhook_delivery"
  | "project_follow"
  | "image_pruning";

/** The right to change one row. Each taking has a higher fence, so that a worker that lost its lease changes nothing. */
export interface Lease {
  readonly table: LeasedTable;
  readonly id: string;
  readonly owner: string;
  readonly fence: number;
}

const leaseSeconds = 30;
const heartbeatMs = 5000;

/** SQL for a `lease_until` that starts now. */
export const freshLease = sql<string>`now() + make_interval(secs => ${sql.lit(leaseSeconds)})`;

/** SQL that is true of the lease's row while no other owner has taken it. */
export function holds(lease: Lease) {
  return sql<boolean>`id = ${lease.id} and fence = ${lease.fence}`;
}

/** SQL that is true of rows that are none of these. */
export function isNoneOf(ids: readonly string[], column = "id") {
  return sql<boolean>`${sql.ref(column)} <> all(${ids}::text[])`;
}

/** Prolongs a lease, also one that has run out and that no other owner has taken; false when it was lost. */
export async function renewLease(db: Db | Tx, lease: Lease): Promise<boolean> {
  const done = await sql`update ${sql.table(lease.table)} set lease_until = ${freshLease}
    where ${holds(lease)} and lease_owner = ${lease.owner}`.execute(db);
  return done.numAffectedRows === 1n;
}

/** For what must not be done twice: throws when the lease was lost, which the signal may not know yet. */
export async function requireLease(db: Db | Tx, lease: Lease): Promise<void> {
  if (!(await renewLease(db, lease))) throw new Error("the lease was lost");
}

/** Does the work while a heartbeat keeps the lease; the signal given to it aborts when the lease is lost or `stop` aborts. */
export async function holdLease<T>(
  db: Db,
  lease: Lease,
  stop: AbortSignal,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const lost = linkSignals(stop);
  const beat = async () => {
    // A database that is away for a moment is no loss: the lease outlasts several beats, and the fence guards the rest.
    const kept = await renewLease(db, lease).catch(() => true);
    if (!kept) lost.abort(new Error("the lease was lost"));
  };
  const timer = setInterval(() => void beat(), heartbeatMs);
  try {
    return await work(lost.signal);
  } finally {
    clearInterval(timer);
    lost.release();
  }
}

/** Ends the leases of processes of this machine that are known to be dead, so that no worker waits for them to run out. */
export async function releaseDeadLeases(db: Db, table: LeasedTable): Promise<void> {
  const owners = await sql<{ lease_owner: string }>`select distinct lease_owner from ${sql.table(table)}
    where lease_owner is not null and lease_until > now()`.execute(db);
  const dead = owners.rows.map((row) => row.lease_owner).filter(isKnownDead);
  if (dead.length === 0) return;
  await sql`update ${sql.table(table)} set lease_until = now() where lease_owner = any(${dead}) and lease_until > now()`.execute(
    db,
  );
}
