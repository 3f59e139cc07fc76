import { limits } from "../../contract/limits.ts";
import type { Result } from "../../contract/routes.ts";
import type { webhookEvents, WebhookFormat } from "../../contract/webhooks.ts";
import { newId } from "../../kit/ids.ts";
import { pageOf } from "../../kit/page.ts";
import { newWebhookSecret } from "../../kit/standard-webhooks.ts";
import type { Handlers } from "../context.ts";
import * as queries from "./queries.ts";
import { sealSecret, sealUrl } from "./webhooks.ts";

export const webhooks: Handlers<"webhooks"> = {
  async create(ctx, { body }) {
    const { org_id } = ctx.caller;
    if ((await queries.countWebhooks(ctx.tx, org_id)) >= limits.webhooks_per_organization)
      return ctx.fail("conflict", {
        error: `An organization has at most ${limits.webhooks_per_organization} webhooks.`,
        hint: "Remove one first, or let one webhook have more kinds of events.",
      });
    const id = newId("whk", ctx.now.getTime());
    const { vault } = ctx.platform;
    const { name, format, events } = body;
    const secret = newWebhookSecret();
    const sealed = { ...sealUrl(vault, id, body.url), sealed_secret: sealSecret(vault, id, secret) };
    const made = await queries.insertWebhook(ctx.tx, { id, org_id, name, format, events, ...sealed });
    ctx.note({ target: id, detail: { name, host: made.host, format, events } });
    return { ...present(made), secret };
  },

  async list(ctx) {
    return { webhooks: (await queries.listWebhooks(ctx.tx, ctx.caller.org_id)).map(present) };
  },

  async update(ctx, { params, body }) {
    const { url, ...change } = body;
    const sealed = url === undefined ? {} : sealUrl(ctx.platform.vault, params.id, url);
    const key = { org_id: ctx.caller.org_id, id: params.id };
    const row = await queries.updateWebhook(ctx.tx, key, { ...change, ...sealed });
    if (row === undefined) return ctx.fail("not_found");
    ctx.note({ target: params.id, detail: { name: row.name, changed: Object.keys(body) } });
    return present(row);
  },

  async delete(ctx, { params }) {
    const gone = await queries.deleteWebhook(ctx.tx, ctx.caller.org_id, params.id);
    if (gone === undefined) return ctx.fail("not_found");
    ctx.note({ target: params.id, detail: { ...gone } });
    return undefined;
  },

  async test(ctx, { params }) {
    const row = await queries.selectWebhook(ctx.tx, ctx.caller.org_id, params.id);
    if (row === undefined) return ctx.fail("not_found");
    const queued = await queries.insertTest(ctx.tx, row);
    if (queued === undefined)
      return ctx.fail("rate_limited", {
        error: `This webhook had ${limits.webhook_events_per_hour} events in the last hour, which is the most.`,
        retryAfterSeconds: 600,
      });
    await ctx.platform.wakeups.send(ctx.tx, "webhooks");
    ctx.note({ target: params.id, detail: { name: row.name } });
    return presentDelivery(queued);
  },

  async deliveries(ctx, { params, query }) {
    const row = await queries.selectWebhook(ctx.tx, ctx.caller.org_id, params.id);
    if (row === undefined) return ctx.fail("not_found");
    const rows = await queries.listDeliveries(ctx.tx, { org_id: row.org_id, webhook_id: row.id }, query.cursor);
    const { shown, next_cursor } = pageOf(rows, limits.webhook_deliveries_listed, ({ id }) => id);
    return { deliveries: shown.map(presentDelivery), next_cursor };
  },
};

function present({ host, disabled_at, ...row }: queries.WebhookRow): Result<"webhooks.list">["webhooks"][number] {
  return {
    ...row,
    url: `${host}/…`,
    format: row.format as WebhookFormat,
    events: row.events as (typeof webhookEvents)[number][],
    enabled: disabled_at === null,
  };
}

type Delivery = Result<"webhooks.test">;

function presentDelivery({ next_attempt_at, ...row }: queries.DeliveryRow): Delivery {
  return {
    ...row,
    status: row.status as Delivery["status"],
    data: row.data as Delivery["data"],
    attempts: row.attempts as unknown as Delivery["attempts"],
    next_attempt_at: row.status === "queued" ? next_attempt_at : null,
  };
}
