import type { Page } from "../../kit/page.ts";
import { sql } from "kysely";
import type { AlertSeverity } from "../../contract/alerts.ts";
import type { Db, Tx } from "../../store/database.ts";
import { provenNow } from "../../store/proven-time.ts";
import type { AlertKey } from "./rules.ts";

const columns = [
  "id",
  "name",
  "machine",
  "subject",
  "severity",
  "summary",
  "hint",
  "opened_at",
  "resolved_at",
  "notify_at",
  "told_severity",
] as const;

export async function openAlerts(tx: Tx) {
  return tx.selectFrom("alert").select(columns).where("resolved_at", "is", null).orderBy("id").execute();
}

export type AlertRow = Awaited<ReturnType<typeof openAlerts>>[number];

export async function countOpen(tx: Db | Tx): Promise<number> {
  const query = tx.selectFrom("alert").select((of) => of.fn.countAll<number>().as("count"));
  return (await query.where("resolved_at", "is", null).executeTakeFirstOrThrow()).count;
}

/** Returns a page of alerts, newest first, and one more. */
export async function listAlerts(db: Db | Tx, page: Page<string> & { readonly all: boolean }) {
  return db
    .selectFrom("alert")
    .select(columns)
    .$if(!page.all, (query) => query.where("resolved_at", "is", null))
    .$if(page.cursor !== undefined, (query) => query.where("id", "<", page.cursor ?? ""))
    .orderBy("id", "desc")
    .limit(page.limit + 1)
    .execute();
}

/** Returns when the last alert about the same thing was resolved; null if there was none. */
export async function lastResolved(tx: Tx, { name, machine, subject }: AlertKey): Promise<string | null> {
  const row = await tx
    .selectFrom("alert")
    .select("resolved_at")
    .where(({ and }) => and({ name, machine, subject }))
    .where("resolved_at", "is not", null)
    .orderBy("resolved_at", "desc")
    .limit(1)
    .executeTakeFirst();
  return row?.resolved_at ?? null;
}

export interface NewAlert extends AlertKey {
  readonly id: string;
  readonly severity: AlertSeverity;
  readonly summary: string;
  readonly hint: string | null;
  readonly opened_at: Date;
  readonly notify_at: Date;
}

export async function insertAlert(tx: Tx, alert: NewAlert): Promise<void> {
  await tx.insertInto("alert").values(alert).execute();
}

export async function updateAlert(
  tx: Tx,
  id: string,
  change: {
    severity?: AlertSeverity;
    summary?: string;
    hint?: string | null;
    resolved_at?: Date;
    told_severity?: AlertSeverity;
  },
): Promise<void> {
  await tx.updateTable("alert").set(change).where("id", "=", id).execute();
}

/** Deletes alerts that were resolved more than 90 days ago. */
export async function deleteOldAlerts(tx: Tx): Promise<void> {
  await tx
    .deleteFrom("alert")
    .where("resolved_at", "<", sql<string>`${provenNow} - interval '90 days'`)
    .execute();
}
