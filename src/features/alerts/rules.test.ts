import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { calledFor, isWorse, messageOf, tellAt, type ToldAlert } from "./rules.ts";

const now = new Date("2026-01-02T03:00:00.000Z");
const ago = (minutes: number) => new Date(now.getTime() - minutes * 60_000).toISOString();
const patience = { warnMs: 10 * 60_000, failMs: 2 * 60_000 };

describe("an alert", () => {
  const table = [
    {
      name: "is not called for by what is ok",
      standing: { status: "ok", since: ago(90), bad_since: null },
      severity: undefined,
    },
    {
      name: "is not called for by what is switched off",
      standing: { status: "off", since: ago(90), bad_since: null },
      severity: undefined,
    },
    {
      name: "waits while a failure is young",
      standing: { status: "fail", since: ago(1), bad_since: ago(1) },
      severity: undefined,
    },
    {
      name: "is critical once the failure lasts",
      standing: { status: "fail", since: ago(2), bad_since: ago(2) },
      severity: "critical",
    },
    {
      name: "waits longer for a warning",
      standing: { status: "warn", since: ago(5), bad_since: ago(5) },
      severity: undefined,
    },
    {
      name: "is a warning once that lasts",
      standing: { status: "warn", since: ago(10), bad_since: ago(10) },
      severity: "warning",
    },
    {
      name: "is a warning for what swings between failing and less",
      standing: { status: "fail", since: ago(1), bad_since: ago(11) },
      severity: "warning",
    },
    {
      name: "does not come of a look or two that did not work",
      standing: { status: "unknown", since: ago(1), bad_since: ago(1) },
      severity: undefined,
    },
    {
      name: "comes of looks that never work",
      standing: { status: "unknown", since: ago(6), bad_since: ago(6) },
      severity: "warning",
    },
  ] as const;
  for (const { name, standing, severity } of table)
    test(name, () => assert.equal(calledFor(standing, patience, now), severity));

  test("that only failures call for is a warning when one alternates with something less", () => {
    const standing = { status: "fail", since: ago(1), bad_since: ago(2) } as const;
    assert.equal(calledFor(standing, { ...patience, warnMs: null }, now), "warning");
  });

  test("never comes of a check that has no patience set", () => {
    const standing = { status: "warn", since: ago(900), bad_since: ago(900) } as const;
    assert.equal(calledFor(standing, { warnMs: null, failMs: null }, now), undefined);
  });
});

test("an alert is told again only when it got graver", () => {
  assert.deepEqual(
    [
      isWorse(null, "warning"),
      isWorse("warning", "critical"),
      isWorse("critical", "warning"),
      isWorse("warning", "warning"),
    ],
    [true, true, false, false],
  );
});

test("one that comes back soon after it was resolved is told when the pause is over", () => {
  assert.equal(tellAt(null, 900_000, now).getTime(), now.getTime());
  assert.equal(tellAt(ago(5), 900_000, now).getTime(), now.getTime() + 600_000);
  assert.equal(tellAt(ago(60), 900_000, now).getTime(), now.getTime());
});

test("one message tells everything that began and ended", () => {
  const alert = (subject: string, severity: ToldAlert["severity"]): ToldAlert => ({
    name: "applications",
    machine: "",
    subject,
    severity,
    summary: "It keeps crashing.",
    hint: "Look at its logs.",
    opened_at: ago(3),
  });
  const message = messageOf([alert("main/shop", "critical")], [alert("main/blog", "critical")]);
  assert.equal(message?.subject, "Berth, critical: applications (main/shop) and 1 more");
  assert.match(
    message?.text ?? "",
    /critical: applications \(main\/shop\)\nIt keeps crashing\.[^]*resolved: applications \(main\/blog\)/,
  );
  assert.equal(messageOf([], []), undefined);
});
