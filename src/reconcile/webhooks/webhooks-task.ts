import { recordEvent } from "../../features/activity/activity.ts";
import * as webhooks from "../../features/webhooks/webhooks.ts";
import { webhookHeaders } from "../../kit/standard-webhooks.ts";
import { provenTime } from "../../store/proven-time.ts";
import type { Lease } from "../../store/leases.ts";
import type { Task, Platform } from "../platform.ts";
import { createLeasedTask } from "../leased-work.ts";

const timeoutMs = 10_000;
const excerptBytes = 1024;
const concurrent = 32;
// One at a time per webhook, and few per organization: slow receivers delay only their own events.
const perOrganization = 4;

/** Sends organizations' events to their webhooks, and retries each for hours until it is delivered. */
export function webhooksTask(platform: Platform, again: () => void): Task {
  const { db, owner } = platform;
  return createLeasedTask<webhooks.TakenDelivery>(platform, again, {
    name: "webhooks",
    periodMs: 15_000,
    topics: ["webhooks"],
    table: "webhook_delivery",
    ...{ limit: concurrent, perOrganization },
    take: (inProgress, rows) =>
      webhooks.takeDelivery(
        db,
        owner,
        inProgress,
        rows.map(({ webhook_id }) => webhook_id),
      ),
    work: async (row, lease, signal) => {
      const attempt = await send(platform, row, signal);
      // If the platform is stopping, this is no failure of the receiver; the event is sent again with the same id.
      if (!signal.aborted) await conclude(platform, { row, lease, attempt });
    },
    broken: async (row, lease, stopping) => {
      const attempt = { at: new Date().toISOString(), duration_ms: 0, http_status: null, excerpt: "" };
      const reason = "The platform failed with an internal error; its log has the details.";
      if (!stopping) await conclude(platform, { row, lease, attempt: { ...attempt, reason } });
    },
    async after(running) {
      const deleted = await webhooks.deleteOldDeliveries(db);
      const waitMs = await webhooks.nextDeliveryMs(db);
      // If all slots are in use, the end of an attempt wakes the task.
      const againMs = waitMs === undefined ? undefined : Math.max(running > 0 ? 1000 : 250, waitMs);
      const detail = `${running} under way${deleted > 0 ? `, ${deleted} old ones deleted` : ""}`;
      return { detail, againMs };
    },
  });
}

type Sent = Omit<webhooks.Attempt, "at" | "duration_ms">;

async function send(platform: Platform, row: webhooks.TakenDelivery, signal: AbortSignal): Promise<webhooks.Attempt> {
  const at = new Date();
  const from = performance.now();
  const { format } = row;
  const sent = await (format === "email"
    ? mail(platform, row, signal)
    : post(platform, { ...row, format, at }, signal));
  return { at: at.toISOString(), duration_ms: Math.round(performance.now() - from), ...sent };
}

async function mail(
  { vault, ports, controlUrl }: Platform,
  row: webhooks.TakenDelivery,
  signal: AbortSignal,
): Promise<Sent> {
  const opened = webhooks.openWebhook(vault, row.webhook_id, row);
  const none = { http_status: null, excerpt: "" };
  if (ports.mailTo === null) return { ...none, reason: "The platform no longer has a mail server." };
  const sender = { org: row.org, name: row.name, controlUrl: controlUrl() };
  const isCode = row.event === "webhook.confirmation";
  const written = isCode ? webhooks.confirmationMail(webhooks.codeOf(opened), sender) : webhooks.mailOf(row, sender);
  const { id, created_at } = row;
  const message = { ...written, id, created_at, kind: "webhook", url: null };
  const delivery = await ports.mailTo(opened.url.slice("mailto:".length)).deliver(message, signal);
  return { ...none, reason: delivery.outcome === "delivered" ? null : delivery.reason };
}

type Posted = webhooks.TakenDelivery & {
  readonly format: Exclude<webhooks.TakenDelivery["format"], "email">;
  readonly at: Date;
};

async function post({ vault, ports }: Platform, row: Posted, signal: AbortSignal): Promise<Sent> {
  const { url, secret } = webhooks.openWebhook(vault, row.webhook_id, row);
  const body = webhooks.bodyOf(row.format, row);
  const timestamp = Math.floor(row.at.getTime() / 1000);
  const headers = {
    "content-type": webhooks.contentTypeOf(row.format),
    "user-agent": "berth-webhook/1.0",
    ...webhookHeaders(secret, { id: row.id, timestamp, body }),
  };
  const outcome = await ports.outgoingHttp.send({ url, headers, body, timeoutMs, excerptBytes }, signal);
  if (outcome.outcome === "failed") return { http_status: null, reason: outcome.reason, excerpt: "" };
  const { status, excerpt } = outcome;
  const isTaken = status >= 200 && status < 300;
  return { http_status: status, reason: isTaken ? null : reasonOf(status), excerpt };
}

function reasonOf(status: number): string {
  if (status >= 300 && status < 400) return `The receiver answered ${status}; redirects are not followed.`;
  return `The receiver answered ${status}.`;
}

const gone = 410;

interface Concluded {
  readonly row: webhooks.TakenDelivery;
  readonly lease: Lease;
  readonly attempt: webhooks.Attempt;
}

/** Stores the attempt and what it means for the webhook. */
async function conclude({ db, clock }: Platform, { row, lease, attempt }: Concluded): Promise<void> {
  const isOwn = row.event === "webhook.test" || row.event === "webhook.confirmation";
  const pauseMs = row.event === "webhook.test" ? null : webhooks.pauseAfter(row.made + 1);
  const now = await provenTime({ db, clock });
  await db.transaction().execute(async (tx) => {
    if (!(await webhooks.recordAttempt(tx, lease, attempt, pauseMs))) return;
    if (attempt.reason === null && row.failures > 0) return webhooks.markWorking(tx, row.webhook_id);
    // A test event or a confirmation code, sent to a webhook that may be off or not set up yet, must not change the webhook's state.
    if (attempt.reason === null || isOwn) return;
    const since = row.failing_since === null ? now : new Date(row.failing_since);
    const disable = whyToDisable(attempt, webhooks.isDead(since, now));
    await webhooks.markFailing(tx, row, { holdMs: webhooks.holdAfter(row.failures + 1), disable });
    if (disable === null) return;
    const { org_id, webhook_id: target, name } = row;
    const detail = { name, reason: disable };
    await recordEvent(tx, { org_id, project_id: null, action: "webhook.disabled", target, detail });
  });
}

function whyToDisable({ http_status, reason }: webhooks.Attempt, isLong: boolean): string | null {
  if (http_status === gone) return "Its receiver responded with 410 (gone for good).";
  return isLong ? `Every attempt of the last 3 days failed. The last one: ${reason ?? ""}` : null;
}
