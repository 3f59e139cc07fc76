import { sql } from "kysely";
import { linkSignals } from "../kit/link-signals.ts";
import { isKnownDead } from "../kit/processes.ts";
import type { Db, Tx } from "./database.ts";

/** Tables whose rows are work that only one process at a time may do. */
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

/** The exclusive right to change one row. Each claim gets a higher fence, so a worker that lost its lease can change nothing. */
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

/** SQL condition that is true for the lease's row until another owner claims it. */
export function holds(lease: Lease) {
  return sql<boolean>`id = ${lease.id} and fence = ${lease.fence}`;
}

/** SQL condition that is true for rows with none of these ids. */
export function isNoneOf(ids: readonly string[], column = "id") {
  return sql<boolean>`${sql.ref(column)} <> all(${ids}::text[])`;
}

/** What a worker has in progress, which decides what it claims next. */
export interface InProgress {
  readonly ids: readonly string[];
  /** Organizations with as many rows in progress as one may have. */
  readonly full: readonly string[];
  /** Organizations with any row in progress. */
  readonly served: readonly string[];
}

/**
 * SQL condition that is true for rows that are not in progress and whose organization may have another one. A platform's only organization
 * may use all slots.
 */
export function mayBegin({ ids, full }: InProgress, table: string) {
  const org = sql.ref(`${table}.org_id`);
  return sql<boolean>`${isNoneOf(ids, `${table}.id`)} and (${org} <> all(${full}::text[])
    or not exists (select from organization other where other.id <> ${org} and other.suspended_at is null))`;
}

/** SQL to sort by first: the rows of organizations that have nothing in progress, and the platform's own, precede the others. */
export function servedLater({ served }: InProgress, table: string) {
  return sql<boolean>`coalesce(${sql.ref(`${table}.org_id`)} = any(${served}::text[]), false)`;
}

/** Renews a lease, even an expired one that no other owner has claimed. Returns false when the lease was lost. */
export async function renewLease(db: Db | Tx, lease: Lease): Promise<boolean> {
  const done = await sql`update ${sql.table(lease.table)} set lease_until = ${freshLease}
    where ${holds(lease)} and lease_owner = ${lease.owner}`.execute(db);
  return done.numAffectedRows === 1n;
}

/** Throws when the lease was lost, which the abort signal may not reflect yet. For work that must not happen twice. */
export async function requireLease(db: Db | Tx, lease: Lease): Promise<void> {
  if (!(await renewLease(db, lease))) throw new Error("the lease was lost");
}

/** Runs work while a heartbeat renews the lease. The work's signal aborts when the lease is lost or `stop` aborts. */
export async function holdLease<T>(
  db: Db,
  lease: Lease,
  stop: AbortSignal,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const lost = linkSignals(stop);
  const beat = async () => {
    // A brief database outage does not lose the lease: it outlasts several heartbeats, and the fence protects the row otherwise.
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

/** Expires leases of processes on this machine that are known to be dead, so that workers can claim them at once. */
export async function releaseDeadLeases(db: Db, table: LeasedTable): Promise<void> {
  const owners = await sql<{ lease_owner: string }>`select distinct lease_owner from ${sql.table(table)}
    where lease_owner is not null and lease_until > now()`.execute(db);
  const dead = owners.rows.map((row) => row.lease_owner).filter(isKnownDead);
  if (dead.length === 0) return;
  await sql`update ${sql.table(table)} set lease_until = now() where lease_owner = any(${dead}) and lease_until > now()`.execute(
    db,
  );
}
