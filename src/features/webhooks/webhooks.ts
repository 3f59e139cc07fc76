import type { Db, Tx } from "../../store/database.ts";
import type { Vault } from "../../store/vault.ts";
import type { Caller } from "../context.ts";
import { selectWebhook } from "./queries.ts";

export {
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
export { bodyOf, holdAfter, isDead, pauseAfter } from "./rules.ts";

/** A webhook of the caller's organization; undefined when there is none. */
export async function findWebhook(db: Db | Tx, caller: Pick<Caller, "org_id">, id: string) {
  return selectWebhook(db, caller.org_id, id);
}

interface Sealed {
  readonly sealed_url: Buffer;
  readonly sealed_secret: Buffer;
}

const names = { url: "webhook_url", secret: "webhook_secret" };

/** The address of a webhook for its row: sealed, and as far as lists show it. */
export function sealUrl(vault: Vault, id: string, url: string) {
  return { sealed_url: vault.seal(id, names.url, url), host: new URL(url).origin };
}

export function sealSecret(vault: Vault, id: string, secret: string): Buffer {
  return vault.seal(id, names.secret, secret);
}

/** Where a webhook's events go, and what signs them. */
export function openWebhook(vault: Vault, id: string, { sealed_url, sealed_secret }: Sealed) {
  return { url: vault.open(id, names.url, sealed_url), secret: vault.open(id, names.secret, sealed_secret) };
}
