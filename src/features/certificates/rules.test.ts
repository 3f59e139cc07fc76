import assert from "node:assert/strict";
import { test } from "node:test";
import {
  besidePresent,
  covers,
  earlierRenewal,
  evaluateRefusal,
  nextLookMs,
  renewalTime,
  whyNoOrder,
} from "./rules.ts";

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const dayMs = 24 * hourMs;
const nowMs = Date.parse("2030-01-01T00:00:00Z");
const inDays = (days: number) => new Date(nowMs + days * dayMs);

type Refused = Parameters<typeof evaluateRefusal>[0];
const refused = (reason: Refused["reason"], not_before: Date | null = null): Refused => ({
  ...{ outcome: "refused", detail: "its message", reason, not_before },
});
const pausesMs = (reason: Refused["reason"], count: number) =>
  Array.from({ length: count }, (_, failures) => evaluateRefusal(refused(reason), failures, nowMs).nextMs);

test("a certificate is renewed at two thirds of its lifetime, whatever the lifetime is", () => {
  for (const days of [90, 47, 6, 1])
    assert.deepEqual(renewalTime({ not_before: inDays(0), not_after: inDays(days) }, null), inDays((days * 2) / 3));
});

test("an organization may use half of the orders that the others have left, and all while it is alone", () => {
  const orders = (all: number, own: number, others = true) => whyNoOrder({ all, own, others }, "org_1");
  assert.deepEqual([orders(0, 0), orders(124, 124), orders(184, 64), orders(249, 249, false)], Array(4).fill(null));
  for (const refused of [orders(125, 125), orders(185, 65)]) assert.match(refused ?? "", /^The organization/);
  assert.equal(whyNoOrder({ all: 249, own: 249, others: true }, null), null);
  for (const org of ["org_1", null])
    assert.match(whyNoOrder({ all: 250, own: 0, others: true }, org) ?? "", /^The platform/);
});

test("a wildcard certificate is valid for one label below its domain, neither for the domain nor for two labels", () => {
  const names = new Set(["shop.test", "*.apps.test"]);
  const hostnames = ["shop.test", "www.shop.test", "demo.apps.test", "apps.test", "a.demo.apps.test", "demo-apps.test"];
  assert.deepEqual(
    hostnames.filter((hostname) => covers(names, hostname)),
    ["shop.test", "demo.apps.test"],
  );
});

test("a renewal window that the authority suggests moves a renewal to an earlier time only", () => {
  const validity = { not_before: inDays(0), not_after: inDays(90) };
  assert.deepEqual(renewalTime(validity, { from: inDays(80), to: inDays(85) }), inDays(60));
  const early = renewalTime(validity, { from: inDays(3), to: inDays(4) });
  assert.ok(inDays(3) <= early && early <= inDays(4), early.toISOString());
  assert.equal(earlierRenewal(inDays(60), { from: inDays(80), to: inDays(85) }), null);
  assert.equal(earlierRenewal(inDays(60), null), null);
  const moved = earlierRenewal(inDays(60), { from: inDays(3), to: inDays(4) });
  assert.ok(moved !== null && inDays(3) <= moved && moved <= inDays(4), String(moved));
});

test("a name fails fewer than five validations within any hour, the limit of Let's Encrypt", () => {
  for (const reason of ["challenge", "caa", "rejected", "account"] as const) {
    const attemptsMs = pausesMs(reason, 20).reduce<number[]>((all, pause) => [...all, (all.at(-1) ?? 0) + pause], [0]);
    for (const startMs of attemptsMs) {
      const inOneHour = attemptsMs.filter((each) => startMs <= each && each < startMs + hourMs);
      assert.ok(inOneHour.length < 5, `${reason}: ${inOneHour.length} attempts`);
    }
    assert.equal(pausesMs(reason, 20).at(-1), dayMs, reason);
  }
});

test("an authority that does not answer is tried again after 1 minute, 2, 4 and at last every hour", () => {
  const pauses = pausesMs("unreachable", 8).map((pause) => pause / minuteMs);
  assert.deepEqual(pauses, [1, 2, 4, 8, 16, 32, 60, 60]);
});

test("a rate limit pauses a name for an hour at least, and as long as the authority requests", () => {
  assert.equal(pausesMs("rate_limited", 1)[0], hourMs);
  assert.equal(evaluateRefusal(refused("rate_limited", inDays(7)), 0, nowMs).nextMs, 7 * dayMs);
});

test("each reason of a refusal has a text of its own, followed by the authority's message", () => {
  const reasons = ["unreachable", "rate_limited", "account", "publish", "challenge", "caa", "rejected"] as const;
  const texts = reasons.map((reason) => evaluateRefusal(refused(reason), 0, nowMs).detail);
  assert.equal(new Set(texts).size, reasons.length);
  for (const text of texts) assert.match(text, /^.{20,}[.:] its message\.$/);
});

test("a name without a certificate is looked at often at first, then less often", () => {
  const lookAfter = (ageMs: number) => nextLookMs(new Date(nowMs - ageMs).toISOString(), nowMs);
  assert.deepEqual([0, 2 * hourMs, 2 * dayMs].map(lookAfter), [15_000, 5 * minuteMs, hourMs]);
});

test("the text of a failed attempt says whether an earlier certificate is still valid", () => {
  assert.equal(besidePresent(null, "Reason.", nowMs), "Reason.");
  assert.match(
    besidePresent(inDays(1).toISOString(), "Reason.", nowMs),
    /^Valid until 2030-01-02.*not renewed yet\. Reason\.$/,
  );
  assert.match(
    besidePresent(inDays(-1).toISOString(), "Reason.", nowMs),
    /^The certificate expired at 2029-12-31.*HTTP\. Reason\.$/,
  );
});
