import { createHmac } from "node:crypto";
import type { Message, Notifier } from "../../ports/notifier.ts";

export interface WebhookOptions {
  readonly url: string;
  /** The key that signs every message; receivers verify the signature. */
  readonly secret: string;
}

const timeoutMs = 15_000;

/**
 * Sends messages as JSON by POST. `berth-signature` is `v1=` and the hex HMAC-SHA256 of the timestamp in `berth-timestamp` (seconds), a dot
 * and the body. A receiver verifies it and refuses old timestamps, so that a message can't be replayed.
 */
export function createWebhookNotifier({ url, secret }: WebhookOptions): Notifier {
  return {
    name: "webhook",
    async deliver(message, signal) {
      const body = JSON.stringify(documentOf(message));
      const timestamp = String(Math.floor(Date.now() / 1000));
      const headers = {
        "content-type": "application/json",
        "user-agent": "berth-webhook/1.0",
        "berth-delivery": message.id,
        "berth-timestamp": timestamp,
        "berth-signature": `v1=${signatureOf(secret, timestamp, body)}`,
      };
      const limited = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
      try {
        // Following a redirect could send the message to another host.
        const response = await fetch(url, { method: "POST", headers, body, redirect: "manual", signal: limited });
        await response.body?.cancel();
        if (response.ok) return { outcome: "delivered" };
        return { outcome: "failed", reason: `The webhook answered ${response.status || "with a redirect"}.` };
      } catch (error) {
        return { outcome: "failed", reason: `The webhook cannot be reached (${reasonOf(error)}).` };
      }
    },
  };
}

export function signatureOf(secret: string, timestamp: string, body: string): string {
  return createHmac("sha256", secret).update(`${timestamp}.${body}`).digest("hex");
}

function documentOf({ id, kind, subject, text, url, created_at }: Message) {
  return { id, kind, subject, text, url, created_at };
}

// The URL itself may hold a secret, so the message names only the kind of error.
function reasonOf(error: unknown): string {
  const { name, cause } = error as Error;
  return (cause as NodeJS.ErrnoException | undefined)?.code ?? name;
}
