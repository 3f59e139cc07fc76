import type { Page } from "../../kit/page.ts";
import { sql } from "kysely";
import { limits } from "../../contract/limits.ts";
import type { webhookEvents, WebhookFormat } from "../../contract/webhooks.ts";
import type { Columns, Db, Tx } from "../../store/database.ts";
import { claimRow, holds, isNoneOf, type InProgress, type Lease } from "../../store/leases.ts";
import { provenNow } from "../../store/proven-time.ts";

const shown = [
  ...(["id", "org_id", "name", "host", "format", "events", "disabled_at", "disabled_reason"] as const),
  ...(["failing_since", "created_at", "confirmed", "hourly_limit"] as const),
] as const;

/** Returns an organization's webhooks, newest first. Their limit is low, so there are no pages. */
export async function listWebhooks(db: Db | Tx, orgId: string) {
  return db.selectFrom("webhook").select(shown).where("org_id", "=", orgId).orderBy("id", "desc").execute();
}

export type WebhookRow = Awaited<ReturnType<typeof listWebhooks>>[number];

export async function selectWebhook(db: Db | Tx, orgId: string, id: string) {
  const query = db.selectFrom("webhook").select(shown).where("org_id", "=", orgId);
  return query.where("id", "=", id).executeTakeFirst();
}

/** Counts the organization's webhooks and locks the organization, so that concurrent additions wait. */
export async function countWebhooks(tx: Tx, orgId: string): Promise<number> {
  await tx.selectFrom("organization").select("id").where("id", "=", orgId).forNoKeyUpdate().execute();
  const query = tx.selectFrom("webhook").select((of) => of.fn.countAll<number>().as("count"));
  return Number((await query.where("org_id", "=", orgId).executeTakeFirstOrThrow()).count);
}

export interface NewWebhook extends Columns<
  "webhook",
  "id" | "org_id" | "name" | "sealed_url" | "host" | "sealed_secret" | "confirmed"
> {
  readonly format: WebhookFormat;
  readonly events: (typeof webhookEvents)[number][];
}

/** Inserts a webhook. An unconfirmed one is off. */
export async function insertWebhook(tx: Tx, webhook: NewWebhook): Promise<WebhookRow> {
  const isMail = webhook.format === "email";
  const hourly_limit = isMail ? limits.webhook_mails_per_hour : limits.webhook_events_per_hour;
  const disabled_at = webhook.confirmed ? null : sql<string>`now()`;
  return tx
    .insertInto("webhook")
    .values({ ...webhook, hourly_limit, disabled_at })
    .returning(shown)
    .executeTakeFirstOrThrow();
}

type Changeable = Omit<NewWebhook, "id" | "org_id"> & { readonly enabled: boolean };
type WebhookChange = { readonly [K in keyof Changeable]?: Changeable[K] | undefined };

/** Updates a webhook; returns undefined when there is none. Enabling it resets its failures; disabling it drops its queued events. */
export async function updateWebhook(tx: Tx, key: { org_id: string; id: string }, change: WebhookChange) {
  const { enabled, ...columns } = change;
  const on = { disabled_at: null, disabled_reason: null, failing_since: null, failures: 0 };
  const off = { disabled_at: sql<string>`coalesce(disabled_at, now())`, disabled_reason: null };
  const state = enabled === undefined ? {} : enabled ? on : off;
  if (enabled === false) await endQueued(tx, key.id);
  // Includes the id, because an update must set at least one column.
  return tx
    .updateTable("webhook")
    .set({ id: key.id, ...columns, ...state })
    .where(({ and }) => and({ org_id: key.org_id, id: key.id }))
    .returning(shown)
    .executeTakeFirst();
}

async function endQueued(tx: Tx | Db, webhookId: string): Promise<void> {
  await tx
    .updateTable("webhook_delivery")
    .set({ status: "failed", finished_at: sql`now()`, lease_until: null, fence: sql`fence + 1` })
    .where(({ and }) => and({ webhook_id: webhookId, status: "queued" }))
    .execute();
}

/** Deletes a webhook; returns its name, or undefined when there was none. */
export async function deleteWebhook(tx: Tx, orgId: string, id: string) {
  const query = tx.deleteFrom("webhook").where("org_id", "=", orgId).where("id", "=", id);
  return query.returning("name").executeTakeFirst();
}

const shownDelivery = [
  ...(["id", "event", "status", "data", "attempts", "created_at", "finished_at"] as const),
  "next_attempt_at",
] as const;

/** Returns deliveries, one row more than a page shows. */
export async function listDeliveries(
  db: Db | Tx,
  of: { org_id: string; webhook_id: string },
  { cursor, limit }: Page<string>,
) {
  return db
    .selectFrom("webhook_delivery")
    .select(shownDelivery)
    .where(({ and }) => and({ org_id: of.org_id, webhook_id: of.webhook_id }))
    .$if(cursor !== undefined, (query) => query.where("id", "<", cursor ?? ""))
    .orderBy("id", "desc")
    .limit(limit + 1)
    .execute();
}

export type DeliveryRow = Awaited<ReturnType<typeof listDeliveries>>[number];

export async function sealedOf(tx: Tx | Db, id: string) {
  const query = tx.selectFrom("webhook").select(["sealed_url", "sealed_secret"]).where("id", "=", id);
  return query.executeTakeFirstOrThrow();
}

const isNextDay = sql<boolean>`codes_since < now() - interval '24 hours'`;

/** Counts a mail with a code; returns false when the organization has reached its limit for 24 hours. */
export async function countCodeMail(tx: Tx, orgId: string): Promise<boolean> {
  const counted = await tx
    .updateTable("organization")
    .set({
      codes_since: sql`case when ${isNextDay} then now() else codes_since end`,
      codes_mailed: sql`case when ${isNextDay} then 1 else codes_mailed + 1 end`,
    })
    .where("id", "=", orgId)
    .where((is) => is.or([isNextDay, is("codes_mailed", "<", limits.webhook_codes_per_day)]))
    .executeTakeFirstOrThrow();
  return counted.numUpdatedRows === 1n;
}

/** Queues a test or confirmation; returns undefined when the webhook has reached its limit of events per hour. */
export async function insertTest(
  tx: Tx,
  { org_id, id, hourly_limit }: Pick<WebhookRow, "org_id" | "id" | "hourly_limit">,
  event: "webhook.test" | "webhook.confirmation",
) {
  const { rows } = await sql<{ isFull: boolean }>`select count(*) >= ${hourly_limit} as "isFull"
    from webhook_delivery where webhook_id = ${id} and created_at > now() - interval '1 hour'`.execute(tx);
  if (rows[0]?.isFull === true) return undefined;
  return tx
    .insertInto("webhook_delivery")
    .values({ org_id, webhook_id: id, event, data: "{}" })
    .returning(shownDelivery)
    .executeTakeFirstOrThrow();
}

/** Claims the next due event of a webhook that is not busy, of disabled ones tests and codes only, of suspended organizations none. */
export function takeDelivery(db: Db, owner: string, inProgress: InProgress, busyWebhooks: readonly string[]) {
  return claimRow<TakenDelivery>(db, {
    ...{ table: "webhook_delivery", owner, inProgress, order: "next_attempt_at" },
    joins: sql`join webhook w on w.id = q.webhook_id join organization o on o.id = q.org_id and o.suspended_at is null`,
    due: sql`q.status = 'queued' and q.next_attempt_at <= now() and ${isNoneOf(busyWebhooks, "q.webhook_id")}
      and (w.disabled_at is null or q.event in ('webhook.test', 'webhook.confirmation'))`,
    from: sql`join webhook w on w.id = q.webhook_id join organization o on o.id = q.org_id`,
    returning: sql`t.id, t.fence, t.org_id, t.webhook_id, t.event, t.data, jsonb_array_length(t.attempts) as made, t.created_at,
      w.name, w.sealed_url, w.sealed_secret, w.format, w.failures, w.failing_since, o.slug as org`,
  });
}

export interface TakenDelivery
  extends
    Columns<"webhook_delivery", "id" | "fence" | "org_id" | "webhook_id" | "event" | "created_at">,
    Columns<"webhook", "name" | "sealed_url" | "sealed_secret" | "failures" | "failing_since"> {
  readonly data: Readonly<Record<string, unknown>>;
  /** The number of attempts so far. */
  readonly made: number;
  readonly org: string;
  readonly format: WebhookFormat;
}

/** One attempt, as stored in the delivery's row. */
export interface Attempt {
  readonly at: string;
  readonly duration_ms: number;
  readonly http_status: number | null;
  readonly reason: string | null;
  readonly excerpt: string;
}

/** Records an attempt. The event is sent again after `pauseMs`, or never if that is null. Returns false when the lease was lost. */
export async function recordAttempt(tx: Tx, lease: Lease, attempt: Attempt, pauseMs: number | null): Promise<boolean> {
  const isOver = attempt.reason === null || pauseMs === null;
  const done = await tx
    .updateTable("webhook_delivery")
    .set({
      attempts: sql`attempts || ${JSON.stringify([attempt])}::jsonb`,
      lease_until: null,
      ...(isOver ? { finished_at: sql`now()`, status: attempt.reason === null ? "delivered" : "failed" } : {}),
      ...(pauseMs === null ? {} : { next_attempt_at: sql`now() + make_interval(secs => ${pauseMs / 1000})` }),
    })
    .where(holds(lease))
    .where("status", "=", "queued")
    .executeTakeFirst();
  return done.numUpdatedRows === 1n;
}

/** Resets the webhook's failures, so that events held back because of them are due now. */
export async function markWorking(tx: Tx, webhookId: string): Promise<void> {
  await tx.updateTable("webhook").set({ failures: 0, failing_since: null }).where("id", "=", webhookId).execute();
  await tx
    .updateTable("webhook_delivery")
    .set({ next_attempt_at: sql`now()` })
    .where(({ and }) => and({ webhook_id: webhookId, status: "queued" }))
    .execute();
}

/** Counts a failure, delays the webhook's other events, and disables it if `disable` gives a reason. The delivery keeps its time. */
export async function markFailing(
  tx: Tx,
  { id, webhook_id: webhookId }: Pick<TakenDelivery, "id" | "webhook_id">,
  { holdMs, disable }: { readonly holdMs: number; readonly disable: string | null },
): Promise<void> {
  const off = { disabled_at: sql<string>`now()`, disabled_reason: disable };
  await tx
    .updateTable("webhook")
    .set({
      failures: sql`failures + 1`,
      failing_since: sql`coalesce(failing_since, now())`,
      ...(disable === null ? {} : off),
    })
    .where("id", "=", webhookId)
    .execute();
  if (disable !== null) return endQueued(tx, webhookId);
  const until = sql<string>`now() + make_interval(secs => ${holdMs / 1000})`;
  await tx
    .updateTable("webhook_delivery")
    .set({ next_attempt_at: until })
    .where("webhook_id", "=", webhookId)
    .where("id", "!=", id)
    .where("status", "=", "queued")
    .where("next_attempt_at", "<", until)
    .where("event", "not in", ["webhook.test", "webhook.confirmation"])
    .execute();
}

/** Returns how long until the next event is due, in milliseconds; undefined when none is queued. */
export async function nextDeliveryMs(db: Db): Promise<number | undefined> {
  const row = await db
    .selectFrom("webhook_delivery")
    .innerJoin("organization", "organization.id", "webhook_delivery.org_id")
    .select(sql<number | null>`extract(epoch from min(next_attempt_at) - now()) * 1000`.as("wait"))
    .where("webhook_delivery.status", "=", "queued")
    .where("organization.suspended_at", "is", null)
    .executeTakeFirst();
  const wait = row?.wait ?? null;
  return wait === null ? undefined : Math.max(0, Number(wait));
}

/** Deletes one batch of deliveries older than 14 days; returns the number of rows. */
export async function deleteOldDeliveries(db: Db): Promise<number> {
  const { numAffectedRows } = await sql`delete from webhook_delivery where id in (
    select id from webhook_delivery where created_at < ${provenNow} - interval '14 days' order by created_at limit 500)`.execute(
    db,
  );
  return Number(numAffectedRows);
}

/** Returns the webhooks that the platform disabled, with their organizations. */
export async function givenUpWebhooks(db: Db) {
  return db
    .selectFrom("webhook")
    .innerJoin("organization", "organization.id", "webhook.org_id")
    .select(["webhook.id", "webhook.name", "organization.slug", "webhook.disabled_reason"])
    .where("disabled_reason", "is not", null)
    .orderBy("webhook.id")
    .execute();
}
