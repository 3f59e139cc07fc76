import { createHmac, randomBytes } from "node:crypto";

// Specification: github.com/standard-webhooks/standard-webhooks, spec/standard-webhooks.md, "Webhook headers" and "Signature scheme" (v1).
const prefix = "whsec_";

/** Creates a secret: `whsec_` and 32 random bytes in base64. */
export function newWebhookSecret(): string {
  return `${prefix}${randomBytes(32).toString("base64")}`;
}

export interface SignedMessage {
  /** The same for every attempt. */
  readonly id: string;
  /** The time of this attempt, in seconds. */
  readonly timestamp: number;
  readonly body: string;
}

export function webhookHeaders(secret: string, message: SignedMessage): Record<string, string> {
  const { id, timestamp } = message;
  return {
    "webhook-id": id,
    "webhook-timestamp": String(timestamp),
    "webhook-signature": `v1,${signatureOf(secret, message)}`,
  };
}

function signatureOf(secret: string, { id, timestamp, body }: SignedMessage): string {
  const key = Buffer.from(secret.slice(prefix.length), "base64");
  return createHmac("sha256", key).update(`${id}.${timestamp}.${body}`).digest("base64");
}
