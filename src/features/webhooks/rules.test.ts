import assert from "node:assert/strict";
import { test } from "node:test";
import { bodyOf, contentTypeOf, holdAfter, isDead, pauseAfter, type WebhookEvent } from "./rules.ts";

const failed: WebhookEvent = {
  event: "deployment.failed",
  created_at: "2026-01-02T03:04:05.678Z",
  data: { project: "shop", deployment: 7, commit: "c0ffee00112233", summary: "It crashed <!channel> & @everyone." },
};
const parsed = (format: "json" | "slack" | "discord" | "telegram" | "teams", event = failed) =>
  JSON.parse(bodyOf(format, event)) as Record<string, unknown>;

test("JSON has the type, the time and all that is known", () => {
  const { event: type, created_at: timestamp, data } = failed;
  assert.deepEqual(parsed("json"), { type, timestamp, data });
});

test("a chat gets one sentence, in which nothing that tenants write becomes a mention", () => {
  assert.deepEqual(parsed("slack"), {
    text: "shop: deployment 7 (c0ffee00) failed. It crashed &lt;!channel&gt; &amp; @everyone.",
  });
  assert.deepEqual(parsed("discord")["allowed_mentions"], { parse: [] });
  const said = "shop: deployment 7 (c0ffee00) failed. It crashed <!channel> & @everyone.";
  assert.equal(parsed("telegram")["text"], said.replace("@", "@\u2060"));
  assert.equal(bodyOf("ntfy", failed), said);
  assert.match(contentTypeOf("ntfy"), /^text\/plain/);
  const [card] = parsed("teams")["attachments"] as { content: { body: unknown[] } }[];
  assert.deepEqual(card?.content.body, [{ type: "RichTextBlock", inlines: [{ type: "TextRun", text: said }] }]);
  const link = { ...failed, data: { ...failed.data, summary: "[Sign in](https://evil.example/) **now** \\[here](x)" } };
  assert.equal(
    parsed("discord", link)["content"],
    String.raw`shop: deployment 7 (c0ffee00) failed. \[Sign in\](https://evil.example/) \*\*now\*\* \\\[here\](x)`,
  );
  const long = { ...failed, data: { ...failed.data, summary: "x".repeat(10_000) } };
  assert.ok(String(parsed("discord", long)["content"]).length <= 2000);
});

test("an event is tried again over hours, later and later, and then given up", () => {
  const pauses = [1, 2, 3, 4, 5, 6, 7, 8].map(pauseAfter);
  assert.equal(pauses.at(-1), null);
  const made = pauses.filter((pause) => pause !== null);
  assert.deepEqual(
    made,
    made.toSorted((a, b) => a - b),
  );
  const hours = made.reduce((sum, pause) => sum + pause, 0) / 3_600_000;
  assert.ok(hours > 12 && hours < 24, String(hours));
});

test("a webhook's other events wait for a failing receiver, for a quarter of an hour at most", () => {
  assert.ok(holdAfter(1) < holdAfter(2));
  assert.equal(holdAfter(50), 15 * 60_000);
});

test("after three days of failures a webhook is dead", () => {
  const now = new Date("2026-01-04T00:00:00Z");
  assert.deepEqual(
    [isDead(new Date("2026-01-01T00:00:00Z"), now), isDead(new Date("2026-01-01T00:00:01Z"), now)],
    [true, false],
  );
});
