import assert from "node:assert/strict";
import { test } from "node:test";
import { cliUser } from "../../test/support/cli.ts";
import { goodToken, startScriptedPlatform } from "../../test/support/scripted-platform.ts";
import type { Result } from "../contract/routes.ts";

const at = "2026-01-02T03:04:05.678Z";
const webhook: Result<"webhooks.list">["webhooks"][number] = {
  ...{ id: "whk_1", name: "chat", url: "https://hooks.example.com/…", format: "json", events: ["alert"] },
  ...{ enabled: true, confirmed: true, disabled_reason: null, failing_since: null, created_at: at },
};
const sent: Result<"webhooks.test"> = {
  ...{ id: "del_2", event: "webhook.test", status: "queued", data: {}, attempts: [] },
  ...{ next_attempt_at: at, created_at: at, finished_at: null },
};
const attempt = { at, duration_ms: 7, http_status: 500, reason: "It answered with status 500.", excerpt: "sorry" };

test("a test of a webhook is followed until its own delivery has ended, and one that failed is exit code 1", async () => {
  for (const [status, answer, exitCode] of [
    ["delivered", { ...attempt, http_status: 200, reason: null }, 0],
    ["failed", attempt, 1],
  ] as const) {
    const ended = { ...sent, status, attempts: [answer], next_attempt_at: null, finished_at: at };
    const earlier = { ...ended, id: "del_1", attempts: [] };
    const looks = [[earlier], [sent, earlier], [ended, earlier]];
    await using platform = await startScriptedPlatform({
      "webhooks.list": () => ({ webhooks: [webhook] }),
      "webhooks.test": () => sent,
      "webhooks.deliveries": () => ({ deliveries: looks.shift() ?? [], next_cursor: null }),
    });
    await using user = await cliUser({ url: platform.url, token: goodToken });
    const told = await user.berth(["webhooks", "test", "chat"]);
    assert.equal(told.exitCode, exitCode, told.stderr);
    assert.match(
      told.stdout,
      exitCode === 0 ? /^The test was delivered with status 200 in 7 ms/ : /^Not delivered: .*sorry/,
    );
    assert.equal(looks.length, 0);
  }
});
