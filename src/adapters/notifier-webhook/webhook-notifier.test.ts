import assert from "node:assert/strict";
import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { notifierSuite, shortMessage as message } from "../../ports/notifier.suite.ts";
import { createWebhookNotifier, signatureOf } from "./webhook-notifier.ts";

const secret = "a secret that signs";
const never = new AbortController().signal;

/** A receiver that answers with the given status. */
async function receiver() {
  const received: { readonly body: string; readonly headers: IncomingHttpHeaders }[] = [];
  const answer = { status: 200, headers: {} as Record<string, string> };
  const server = createServer((request, response) => {
    void text(request).then((body) => {
      if (answer.status < 300) received.push({ body, headers: request.headers });
      response.writeHead(answer.status, answer.headers).end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook?key=secret-in-the-address`;
  const close = () => {
    server.closeAllConnections();
    return new Promise<void>((resolve) => server.close(() => resolve()));
  };
  return { received, answer, url, close };
}

notifierSuite(async () => {
  const hook = await receiver();
  return {
    notifier: createWebhookNotifier({ url: hook.url, secret }),
    received: async () =>
      hook.received.map(({ body }) => Object.values(JSON.parse(body) as Record<string, unknown>).join("\n")),
    breakDown: async () => void (hook.answer.status = 500),
    close: hook.close,
  };
});

test("the signature covers the time and the body, and the delivery has the message's id", async () => {
  const hook = await receiver();
  await createWebhookNotifier({ url: hook.url, secret }).deliver(message, never);
  const { body, headers } = hook.received[0] as (typeof hook.received)[0];
  const timestamp = String(headers["berth-timestamp"]);
  assert.ok(Math.abs(Number(timestamp) - Date.now() / 1000) < 30);
  assert.equal(headers["berth-signature"], `v1=${signatureOf(secret, timestamp, body)}`);
  assert.equal(headers["berth-delivery"], "ntf_9");
  assert.deepEqual(JSON.parse(body), message);
  await hook.close();
});

test("the signature is the one that other tools make", () => {
  // Computed with: printf '1700000000.{}' | openssl dgst -sha256 -hmac key
  assert.equal(signatureOf("key", "1700000000", "{}"), opensslSays);
});

test("a redirect is no delivery and is not followed", async () => {
  const [hook, elsewhere] = [await receiver(), await receiver()];
  Object.assign(hook.answer, { status: 307, headers: { location: elsewhere.url } });
  const delivery = await createWebhookNotifier({ url: hook.url, secret }).deliver(message, never);
  assert.equal(delivery.outcome, "failed");
  assert.equal(elsewhere.received.length, 0);
  await Promise.all([hook.close(), elsewhere.close()]);
});

test("nobody there is a failure that does not repeat the address", async () => {
  const hook = await receiver();
  await hook.close();
  const delivery = await createWebhookNotifier({ url: hook.url, secret }).deliver(message, never);
  assert.deepEqual(delivery, { outcome: "failed", reason: "The webhook cannot be reached (ECONNREFUSED)." });
});

const opensslSays = "9d713ed406bb7076d4123f0dc2c39d2df5c654ed4b0cd56b52c8b4c940bd63ae";
