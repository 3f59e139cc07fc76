import { createOutboxNotifier } from "../adapters/notifier-outbox/outbox-notifier.ts";
import { createSmtpNotifier } from "../adapters/notifier-smtp/smtp-notifier.ts";
import { createWebhookNotifier } from "../adapters/notifier-webhook/webhook-notifier.ts";
import type { Log } from "../kit/log.ts";
import type { MailTo, Notifier } from "../ports/notifier.ts";
import { pathsIn, type Config } from "./config.ts";
import { StartRefused } from "./start-refused.ts";

type NotifierConfig = Pick<Config, "dataDir" | "smtpUrl" | "mailFrom" | "mailTo" | "webhookUrl" | "webhookSecret">;

/**
 * Creates the operator's notification channels: mail and webhook as configured, or the outbox in the data folder if neither is. Throws
 * `StartRefused`.
 */
export function notifiersOf(config: NotifierConfig, log: Log): readonly Notifier[] {
  const chosen = [...mail(config), ...webhook(config)];
  return chosen.length > 0 ? chosen : [createOutboxNotifier({ dir: pathsIn(config.dataDir).outbox, log })];
}

/**
 * Returns a function that creates a mail channel to one address on the operator's mail server, for webhooks of the format `email`; null if
 * no mail server is set.
 */
export function mailToOf({ smtpUrl: url, mailFrom: from }: NotifierConfig): MailTo {
  if (url === null || from === null) return null;
  return (address) => createSmtpNotifier({ url, from, to: [address] });
}

function mail({ smtpUrl: url, mailFrom: from, mailTo: to }: NotifierConfig): Notifier[] {
  if (url === null) return [];
  if (!["smtp:", "smtps:"].includes(URL.parse(url)?.protocol ?? ""))
    throw new StartRefused("BERTH_SMTP_URL must begin with smtp:// or smtps://.");
  if (from === null || to.length === 0)
    throw new StartRefused("BERTH_SMTP_URL needs BERTH_MAIL_FROM and BERTH_MAIL_TO beside it.");
  return [createSmtpNotifier({ url, from, to })];
}

function webhook({ webhookUrl: url, webhookSecret: secret }: NotifierConfig): Notifier[] {
  if (url === null) return [];
  if (!["http:", "https:"].includes(URL.parse(url)?.protocol ?? ""))
    throw new StartRefused("BERTH_WEBHOOK_URL must begin with http:// or https://.");
  if (secret === null) throw new StartRefused("BERTH_WEBHOOK_URL needs BERTH_WEBHOOK_SECRET beside it.");
  return [createWebhookNotifier({ url, secret })];
}
