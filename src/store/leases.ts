import { sql, type RawBuilder } from "kysely";
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
  | "preview_fetch"
  | "image_pruning"
  | "database_branch";

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

/** Which row of a table a worker claims next, in SQL in which `q` is a row of the table. */
export interface Candidates {
  readonly table: LeasedTable | "commit_status" | "preview_comment";
  readonly inProgress: InProgress;
  /** Joins that the other parts use. */
  readonly joins?: RawBuilder<unknown>;
  /** True for a row whose work is due. */
  readonly due: RawBuilder<unknown>;
  /** True for a row that no other worker holds; by default its lease has run out or was never taken. */
  readonly free?: RawBuilder<unknown>;
  /** True for a row that is claimed even if its organization is full: a dead worker left something to end. */
  readonly evenIfFull?: RawBuilder<unknown>;
  /** The column by which the smallest comes first. */
  readonly order: "created_at" | "next_attempt_at" | "next_fetch_at";
  /** The columns of the row's id, by which rows in progress are recognized, and of its organization. */
  readonly id?: string;
  readonly organization?: string;
}

const isFree = sql`(q.lease_until is null or q.lease_until <= now())`;

/**
 * SQL that selects and locks the next row. The rows of organizations that have nothing in progress, and the platform's own, come first. An
 * organization that has its share in progress gets another row only if it is the platform's only one.
 */
export function nextRow({ table, inProgress, joins = sql``, due, free = isFree, order, ...of }: Candidates) {
  const { id = "q.id", organization = "q.org_id", evenIfFull = sql`false` } = of;
  const org = sql.ref(organization);
  return sql`select q.* from ${sql.table(table)} q ${joins}
    where ${due} and ${free} and ${isNoneOf(inProgress.ids, id)}
      and (${evenIfFull} or coalesce(${org} <> all(${inProgress.full}::text[]), true)
        or not exists (select from organization other where other.id <> ${org} and other.suspended_at is null))
    order by coalesce(${org} = any(${inProgress.served}::text[]), false), q.${sql.ref(order)}, ${sql.ref(id)}
    for update of q skip locked limit 1`;
}

/** A claim, in SQL in which `q` is the row before it, and `t` the row after it. */
export interface Claim extends Candidates {
  readonly table: LeasedTable;
  readonly owner: string;
  /** Further changes of the row, each preceded by a comma. */
  readonly set?: RawBuilder<unknown>;
  /** Joins of what `returning` needs. */
  readonly from?: RawBuilder<unknown>;
  readonly returning: RawBuilder<unknown>;
}

/** Claims the next row: the owner gets a fresh lease with a higher fence. Returns undefined when there is none. */
export async function claimRow<T>(db: Db, claim: Claim): Promise<T | undefined> {
  const { table, owner, set = sql``, from = sql``, returning } = claim;
  const { rows } = await sql<T>`
    with q as (${nextRow(claim)})
    update ${sql.table(table)} t set lease_owner = ${owner}, lease_until = ${freshLease}, fence = q.fence + 1 ${set}
    from q ${from} where t.id = q.id returning ${returning}`.execute(db);
  return rows[0];
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
