import { sql } from "kysely";
import type { Db, Tx } from "../../store/database.ts";
import { freshLease, holds, isNoneOf, type Lease } from "../../store/leases.ts";

export interface NewNotification {
  readonly id: string;
  readonly org_id: string | null;
  readonly notifier: string;
  readonly kind: string;
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
export async function takeNotification(
  db: Db,
  owner: string,
  { notifiers, underWay }: { readonly notifiers: readonly string[]; readonly underWay: readonly string[] },
) {
  return db
    .updateTable("notification")
    .set((set) => ({
      lease_owner: owner,
      lease_until: freshLease,
      fence: set("fence", "+", 1),
      attempts: set("attempts", "+", 1),
    }))
    .where("id", "=", (of) =>
      of
        .selectFrom("notification")
        .select("id")
        .where("status", "=", "queued")
        .where("notifier", "in", [...notifiers])
        .where("next_attempt_at", "<=", sql<string>`now()`)
        .where("expires_at", ">", sql<string>`now()`)
        .where((where) => where.or([where("lease_until", "is", null), where("lease_until", "<", sql<string>`now()`)]))
        .where(isNoneOf(underWay))
        .orderBy("next_attempt_at")
        .limit(1)
        .forUpdate()
        .skipLocked(),
    )
    .returning(["id", "notifier", "kind", "sealed_message", "attempts", "fence", "created_at"])
    .executeTakeFirst();
}

export type TakenNotification = NonNullable<Awaited<ReturnType<typeof takeNotification>>>;

/** Marks a message as delivered and erases its text. */
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
    .where("finished_at", "<", sql<string>`now() - interval '7 days'`)
    .execute();
  return db
    .updateTable("notification")
    .set({ status: "given_up", sealed_message: null, finished_at: sql`now()` })
    .where("status", "=", "queued")
    .where("expires_at", "<=", sql<string>`now()`)
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
