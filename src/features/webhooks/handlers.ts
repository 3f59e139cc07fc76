import { limits } from "../../contract/limits.ts";
import type { Body, Result } from "../../contract/routes.ts";
import type { webhookEvents, WebhookFormat } from "../../contract/webhooks.ts";
import { newId } from "../../kit/ids.ts";
import { pageOf } from "../../kit/page.ts";
import { newWebhookSecret } from "../../kit/standard-webhooks.ts";
import { privateUrlProblem } from "../../kit/reachable-addresses.ts";
import type { Context, Handlers, RefusalText } from "../context.ts";
import * as queries from "./queries.ts";
import { fits, isCode, openWebhook, sealSecret, sealUrl } from "./webhooks.ts";

export const webhooks: Handlers<"webhooks"> = {
  async create(ctx, { body }) {
    const { org_id } = ctx.caller;
    if ((await queries.countWebhooks(ctx.tx, org_id)) >= limits.webhooks_per_organization)
      return ctx.fail("conflict", {
        error: `An organization has at most ${limits.webhooks_per_organization} webhooks.`,
        hint: "Remove one first, or add more kinds of events to an existing webhook.",
      });
    const id = newId("whk", ctx.now.getTime());
    const { vault } = ctx.platform;
    const { name, format, events } = body;
    requireFit(ctx, format, body.url);
    const isMail = format === "email";
    const secret = newWebhookSecret();
    const sealed = { ...sealUrl(vault, id, body.url), sealed_secret: sealSecret(vault, id, secret) };
    const made = await queries.insertWebhook(ctx.tx, {
      id,
      org_id,
      name,
      format,
      events,
      ...sealed,
      confirmed: !isMail,
    });
    if (isMail) await mailCode(ctx, made);
    ctx.note({ target: id, detail: { name, host: made.host, format, events } });
    return { ...present(made), secret: isMail ? null : secret };
  },

  async list(ctx) {
    return { webhooks: (await queries.listWebhooks(ctx.tx, ctx.caller.org_id)).map(present) };
  },

  async update(ctx, { params, body }) {
    const { url, code, ...change } = body;
    const key = { org_id: ctx.caller.org_id, id: params.id };
    const before = await queries.selectWebhook(ctx.tx, key.org_id, key.id);
    if (before === undefined) return ctx.fail("not_found");
    const { format = before.format as WebhookFormat } = change;
    const isMail = format === "email";
    if (isMail !== (before.format === "email"))
      return ctx.fail("conflict", { error: "A webhook cannot change to or from e-mail. Add a new webhook instead." });
    if (url !== undefined) requireFit(ctx, format, url);
    if (code !== undefined) await requireCode(ctx, before, code);
    const confirmed = isMail && url !== undefined ? false : code !== undefined || before.confirmed;
    if (!confirmed && change.enabled === true) return ctx.fail("conflict", unconfirmed);
    const { vault } = ctx.platform;
    const secret = isMail && url !== undefined ? { sealed_secret: sealSecret(vault, key.id, newWebhookSecret()) } : {};
    const sealed = url === undefined ? {} : { ...sealUrl(vault, key.id, url), ...secret };
    // A newly confirmed address gets events at once; a changed address gets none until it is confirmed.
    const enabled = confirmed === before.confirmed ? change.enabled : confirmed && change.enabled !== false;
    const row = await queries.updateWebhook(ctx.tx, key, { ...change, ...sealed, confirmed, enabled });
    if (row === undefined) return ctx.fail("not_found");
    if (isMail && url !== undefined) await mailCode(ctx, row);
    const losesNothing = keepsSending(before, body);
    ctx.note({ target: params.id, detail: { name: row.name, changed: Object.keys(body) }, losesNothing });
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
    ctx.note({ target: params.id, detail: { name: row.name } });
    if (!row.confirmed) return presentDelivery(await mailCode(ctx, row));
    const queued = await queries.insertTest(ctx.tx, row, "webhook.test");
    if (queued === undefined)
      return ctx.fail("rate_limited", {
        error: `This webhook was sent ${row.hourly_limit} events in the last hour, which is its limit.`,
        retryAfterSeconds: 600,
      });
    await ctx.platform.wakeups.send(ctx.tx, "webhooks");
    return presentDelivery(queued);
  },

  async deliveries(ctx, { params, query }) {
    const row = await queries.selectWebhook(ctx.tx, ctx.caller.org_id, params.id);
    if (row === undefined) return ctx.fail("not_found");
    const rows = await queries.listDeliveries(ctx.tx, { org_id: row.org_id, webhook_id: row.id }, query);
    const { shown, next_cursor } = pageOf(rows, query.limit, ({ id }) => id);
    return { deliveries: shown.map(presentDelivery), next_cursor };
  },
};

/** Returns whether a change keeps everything that is sent now; no response shows an overwritten address whole. */
function keepsSending(before: queries.WebhookRow, { url, format, events, enabled }: Body<"webhooks.update">): boolean {
  if (url !== undefined || enabled === false) return false;
  return (
    (format ?? before.format) === before.format &&
    before.events.every((kind) => events?.includes(kind as never) ?? true)
  );
}

type WritingContext = Pick<Context<"webhooks.create">, "tx" | "platform"> & {
  readonly fail: (code: "conflict" | "rate_limited" | "invalid_request", more: RefusalText) => never;
};

function requireFit(ctx: WritingContext, format: WebhookFormat, url: string): void {
  if (!fits(format, url))
    return ctx.fail("invalid_request", {
      error:
        "The format `email` needs an address such as mailto:ops@example.com; every other format needs https:// or http://.",
    });
  const problem = format === "email" ? undefined : privateUrlProblem(url, ctx.platform.settings.outgoingNetworks);
  if (problem !== undefined)
    return ctx.fail("invalid_request", { error: problem, details: [{ path: "url", message: problem }] });
  if (format === "email" && ctx.platform.ports.mailTo === null)
    return ctx.fail("conflict", {
      error: "This platform sends no e-mail.",
      hint: "Its operator has to set BERTH_SMTP_URL, BERTH_MAIL_FROM and BERTH_MAIL_TO.",
    });
}

async function requireCode(ctx: WritingContext, row: queries.WebhookRow, code: string): Promise<void> {
  const sealed = await queries.sealedOf(ctx.tx, row.id);
  if (isCode(code, openWebhook(ctx.platform.vault, row.id, sealed))) return;
  return ctx.fail("invalid_request", {
    error: "This is not the code that was mailed to the webhook's address.",
    hint: "Use the code of the newest mail. A test of the webhook sends it again.",
  });
}

const unconfirmed = {
  error: "The webhook's address is not confirmed yet.",
  hint: "Berth mailed a code to it; confirm with: berth webhooks confirm <webhook> <code>. A test of the webhook mails the code again.",
};

/** Queues the mail with the code. The daily limit of such mails is per organization, so deleting webhooks does not reset it. */
async function mailCode(ctx: WritingContext, row: queries.WebhookRow): Promise<queries.DeliveryRow> {
  const mayMail = await queries.countCodeMail(ctx.tx, row.org_id);
  const queued = mayMail ? await queries.insertTest(ctx.tx, row, "webhook.confirmation") : undefined;
  if (queued === undefined)
    return ctx.fail("rate_limited", {
      error: `An organization can send at most ${limits.webhook_codes_per_day} mails with a code in 24 hours.`,
      retryAfterSeconds: 3600,
    });
  await ctx.platform.wakeups.send(ctx.tx, "webhooks");
  return queued;
}

function present({ host, disabled_at, ...row }: queries.WebhookRow): Result<"webhooks.list">["webhooks"][number] {
  return {
    ...row,
    url: row.format === "email" ? host : `${host}/…`,
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
