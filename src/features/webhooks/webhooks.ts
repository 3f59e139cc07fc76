import { createHmac, timingSafeEqual } from "node:crypto";
import type { Vault } from "../../store/vault.ts";
import type { WebhookFormat } from "../../contract/webhooks.ts";

export {
  selectWebhook as findWebhook,
  deleteOldDeliveries,
  givenUpWebhooks,
  markFailing,
  markWorking,
  nextDeliveryMs,
  recordAttempt,
  takeDelivery,
  type Attempt,
  type TakenDelivery,
} from "./queries.ts";
export { bodyOf, confirmationMail, contentTypeOf, holdAfter, isDead, mailOf, pauseAfter } from "./rules.ts";

interface Sealed {
  readonly sealed_url: Buffer;
  readonly sealed_secret: Buffer;
}

const names = { url: "webhook_url", secret: "webhook_secret" };

/** Returns the columns for a webhook's address: sealed, and the part that lists show. */
export function sealUrl(vault: Vault, id: string, url: string) {
  return { sealed_url: vault.seal(id, names.url, url), host: isMail(url) ? url : new URL(url).origin };
}

const isMail = (url: string) => url.startsWith("mailto:");

/** Returns whether an address is of the kind that the format needs. */
export function fits(format: WebhookFormat, url: string): boolean {
  return (format === "email") === isMail(url);
}

/** Returns the code that confirms a webhook's e-mail address; it is sent only to that mailbox. */
export function codeOf({ url, secret }: { readonly url: string; readonly secret: string }): string {
  const digest = createHmac("sha256", secret).update(url).digest("hex");
  return `${digest.slice(0, 6)}-${digest.slice(6, 12)}`;
}

export function isCode(given: string, webhook: { readonly url: string; readonly secret: string }): boolean {
  const one = Buffer.from(given.trim().toLowerCase());
  const other = Buffer.from(codeOf(webhook));
  return one.length === other.length && timingSafeEqual(one, other);
}

export function sealSecret(vault: Vault, id: string, secret: string): Buffer {
  return vault.seal(id, names.secret, secret);
}

export function openWebhook(vault: Vault, id: string, { sealed_url, sealed_secret }: Sealed) {
  return { url: vault.open(id, names.url, sealed_url), secret: vault.open(id, names.secret, sealed_secret) };
}
