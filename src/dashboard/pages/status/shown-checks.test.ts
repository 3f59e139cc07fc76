import assert from "node:assert/strict";
import { test } from "node:test";
import { shownChecks, type Check } from "./shown-checks.ts";

const check = (name: string, status: string, subject: string | null = null) =>
  ({ check: name, machine: "one", subject, status }) as Check;

test("what fails comes first, without what an alert shows and without sums of what is listed", () => {
  const checks = [
    check("edge", "ok"),
    check("disk", "fail"),
    check("database", "fail", "shop"),
    check("database", "ok", "blog"),
    check("database", "fail"),
    check("mail", "off"),
    check("clock", "warn"),
  ];
  const alerts = [check("disk", "fail")] as unknown as Parameters<typeof shownChecks>[1];
  assert.deepEqual(
    shownChecks(checks, alerts).map((each) => [each.check, each.subject]),
    [
      ["database", "shop"],
      ["clock", null],
      ["edge", null],
      ["database", "blog"],
      ["mail", null],
    ],
  );
});
