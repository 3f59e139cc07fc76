import { limits } from "./limits.ts";
import { z } from "zod";
import { id, idCursor, pageQuery, name, nextCursor, timestamp, row } from "./table.ts";

/** The kinds of events that a webhook may receive. Each covers several events, such as `deployment.activated`. */
export const webhookEvents = ["deployment", "build", "alert", "backup", "certificate", "approval"] as const;
export const webhookFormats = ["json", "slack", "discord", "telegram", "ntfy", "teams", "email"] as const;
export type WebhookFormat = (typeof webhookFormats)[number];

const url = z
  .string()
  .max(2048)
  .refine(
    (text) => isReceiver(text) || isMailAddress(text),
    "use an address that begins with https:// or http://, without user name and fragment, or mailto: with one e-mail address",
  );

function isReceiver(text: string): boolean {
  const parsed = URL.parse(text);
  if (parsed === null || !/^https?:$/.test(parsed.protocol)) return false;
  return parsed.username === "" && parsed.password === "" && parsed.hash === "";
}

// A single address without comments, quotes and headers, so that it can't be a list.
const label = "[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?";
const mailAddress = new RegExp(`^mailto:[\\w.!$&'*+/=^\`{|}~-]{1,64}@(?:${label}\\.)+${label}$`);

function isMailAddress(text: string): boolean {
  return mailAddress.test(text) && text.length <= "mailto:".length + 254;
}

const events = z
  .array(z.enum(webhookEvents))
  .min(1, "choose at least one kind of event")
  .max(webhookEvents.length)
  .transform((kinds) => [...new Set(kinds)]);

const webhook = z.object({
  id,
  name: z.string(),
  /** The non-secret part of the address: `https://hooks.example.com/…`, `mailto:ops@example.com`. */
  url: z.string(),
  format: z.enum(webhookFormats),
  events: z.array(z.enum(webhookEvents)),
  /** False: no deliveries are sent. */
  enabled: z.boolean(),
  /** False: the code that was mailed to its address has not been entered yet. */
  confirmed: z.boolean(),
  /** Why the platform switched it off; null when it is on, or an owner switched it off. */
  disabled_reason: z.string().nullable(),
  /** The time since which every attempt has failed; null while deliveries arrive. */
  failing_since: timestamp.nullable(),
  created_at: timestamp,
});

const attempt = z.object({
  at: timestamp,
  duration_ms: z.number().int(),
  /** Null for e-mail, and without a response. */
  http_status: z.number().int().nullable(),
  /** Why the attempt failed; null when it succeeded. */
  reason: z.string().nullable(),
  /** The start of the response body. */
  excerpt: z.string(),
});

const delivery = z.object({
  /** The `webhook-id` of every attempt, by which a receiver recognises repetitions. */
  id,
  event: z.string(),
  /** `dropped`: the hourly limit of events was exceeded. */
  status: z.enum(["queued", "delivered", "failed", "dropped"]),
  data: z.record(z.string(), z.unknown()),
  attempts: z.array(attempt),
  /** Null when no further attempt follows. */
  next_attempt_at: timestamp.nullable(),
  created_at: timestamp,
  finished_at: timestamp.nullable(),
});

const params = z.object({ id });
const named = { names: "webhook", params } as const;

export const rows = [
  row({
    name: "webhooks.create",
    request: "POST /v1/webhooks",
    may: "owner webhooks:write",
    body: z.strictObject({ name, url, format: z.enum(webhookFormats).default("json"), events }),
    result: webhook.extend({
      /** Verifies signatures. Shown only once; null for e-mail, which is not signed. */
      secret: z.string().nullable(),
    }),
    secret: "secret",
    success: [201],
    errors: ["conflict", "rate_limited"],
    activity: "webhook.created",
    summary:
      "Add a webhook: signed requests with the organization's events. The signing secret is shown only once. An e-mail address first gets a code; events follow once `webhooks.update` has sent that code",
  }),
  row({
    name: "webhooks.list",
    request: "GET /v1/webhooks",
    may: "owner webhooks:read",
    result: z.object({ webhooks: z.array(webhook) }),
    summary: "List the organization's webhooks",
  }),
  row({
    ...named,
    name: "webhooks.update",
    request: "PATCH /v1/webhooks/:id",
    may: "owner webhooks:write",
    approval: true,
    body: z.strictObject({
      name: name.optional(),
      url: url.optional(),
      format: z.enum(webhookFormats).optional(),
      events: events.optional(),
      enabled: z.boolean().optional(),
      /** The code that was mailed to its address. */
      code: z.string().max(100).optional(),
    }),
    result: webhook,
    errors: ["conflict", "rate_limited"],
    activity: "webhook.updated",
    summary: "Change a webhook, or switch it off or on",
  }),
  row({
    ...named,
    name: "webhooks.delete",
    request: "DELETE /v1/webhooks/:id",
    may: "owner webhooks:write",
    approval: true,
    activity: "webhook.deleted",
    summary: "Remove a webhook and its deliveries; nothing more is sent",
  }),
  row({
    ...named,
    name: "webhooks.test",
    request: "POST /v1/webhooks/:id/test",
    may: "owner webhooks:write",
    result: delivery,
    success: [201],
    errors: ["conflict", "rate_limited"],
    activity: "webhook.tested",
    summary:
      "Send a test event now, even to a webhook that is off; an unconfirmed e-mail address gets its code again. The list of deliveries shows the result",
  }),
  row({
    ...named,
    name: "webhooks.deliveries",
    request: "GET /v1/webhooks/:id/deliveries",
    may: "owner webhooks:read",
    query: z.object(pageQuery(idCursor, limits.webhook_deliveries_listed)),
    result: z.object({ deliveries: z.array(delivery), next_cursor: nextCursor }),
    summary: "List the deliveries of the last 14 days with every attempt, newest first, 50 at a time",
  }),
] as const;
