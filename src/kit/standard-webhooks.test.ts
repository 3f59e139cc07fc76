import assert from "node:assert/strict";
import { test } from "node:test";
import { newWebhookSecret, webhookHeaders } from "./standard-webhooks.ts";

test("the signature is the one that the scheme's own libraries check", () => {
  const message = { id: "msg_p5jXN8AQM9LWM0D4loKWxJek", timestamp: 1_614_265_330, body: '{"test": 2432232314}' };
  assert.deepEqual(webhookHeaders("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", message), {
    "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
    "webhook-timestamp": "1614265330",
    "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
  });
});

test("a secret is 32 bytes in base64 behind its prefix", () => {
  assert.match(newWebhookSecret(), /^whsec_[A-Za-z0-9+/]{43}=$/);
});
