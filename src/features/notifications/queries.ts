import { sql } from "kysely";
import type { Columns, Db, Tx } from "../../store/database.ts";
import { claimRow, holds, type InProgress, type Lease } from "../../store/leases.ts";
import { provenNow } from "../../store/proven-time.ts";

export interface NewNotification extends Columns<"notification", "id" | "org_id" | "notifier" | "kind"> {
  readonly sealed_message: Buffer;
  readonly created_at: Date;
  readonly expires_at: Date;
}

export async function insertNotifications(tx: Tx | Db, rows: readonly NewNotification[]): Promise<void> {
  await tx
    .insertInto("notification")
    .values([...rows])
    .execute();
}

/** Claims the next message that one of these notifiers can deliver and that no worker holds. */
export function takeNotification(db: Db, owner: string, notifiers: readonly string[], inProgress: InProgress) {
  return claimRow<TakenNotification>(db, {
    ...{ table: "notification", owner, inProgress, order: "next_attempt_at" },
    due: sql`q.status = 'queued' and q.notifier = any(${notifiers}::text[]) and q.next_attempt_at <= now() and q.expires_at > now()`,
    set: sql`, attempts = q.attempts + 1`,
    returning: sql`t.id, t.org_id, t.notifier, t.kind, t.sealed_message, t.attempts, t.fence, t.created_at`,
  });
}

export interface TakenNotification extends Columns<
  "notification",
  "id" | "org_id" | "notifier" | "kind" | "attempts" | "fence" | "created_at"
> {
  readonly sealed_message: Buffer;
}

export async function markDelivered(db: Db, lease: Lease): Promise<void> {
  await underLease(db, lease)
    .set({ status: "delivered", sealed_message: null, last_error: null, lease_until: null, finished_at: sql`now()` })
    .execute();
}

/** Schedules a message to be tried again after the pause. */
export async function putOff(
  db: Db,
  lease: Lease,
  again: { readonly reason: string; readonly pauseMs: number },
): Promise<void> {
  const next_attempt_at = sql<string>`now() + make_interval(secs => ${again.pauseMs / 1000})`;
  await underLease(db, lease).set({ last_error: again.reason, next_attempt_at, lease_until: null }).execute();
}

function underLease(db: Db, lease: Lease) {
  return db.updateTable("notification").where(holds(lease));
}

/** Gives up expired messages and deletes messages that ended more than 7 days ago. Returns those it gave up. */
export async function endNotifications(db: Db) {
  await db
    .deleteFrom("notification")
    .where("status", "<>", "queued")
    .where("finished_at", "<", sql<string>`${provenNow} - interval '7 days'`)
    .execute();
  return db
    .updateTable("notification")
    .set({ status: "given_up", sealed_message: null, finished_at: sql`now()` })
    .where("status", "=", "queued")
    .where("expires_at", "<=", provenNow)
    .returning(["id", "notifier", "kind", "last_error"])
    .execute();
}

/** Returns how long until the next message is due, in milliseconds; undefined when none is queued. */
export async function nextDueMs(db: Db): Promise<number | undefined> {
  const row = await db
    .selectFrom("notification")
    .select(sql<number>`extract(epoch from min(next_attempt_at) - now()) * 1000`.as("wait"))
    .where("status", "=", "queued")
    .executeTakeFirst();
  return row?.wait === null || row === undefined ? undefined : Math.max(0, Number(row.wait));
}
