import assert from "node:assert/strict";
import { test } from "node:test";
import { nextRows, shownStatus, worstOf, type CheckReport, type CheckRow, type Finding } from "./rules.ts";

const patience = { warnMs: 0, failMs: 0 };
const report = (findings: readonly Finding[], more: Partial<CheckReport> = {}): CheckReport => ({
  name: "disk",
  machine: "host",
  patience,
  findings,
  ...more,
});
const finding = (status: Finding["status"], subject = ""): Finding => ({ subject, status, detail: status, hint: null });
const at = (minute: number) => new Date(Date.UTC(2026, 0, 2, 3, minute));
const text = (minute: number) => at(minute).toISOString();

/** The rows after one check a minute with these results. */
function looks(...statuses: readonly Finding["status"][]): CheckRow {
  let rows: readonly CheckRow[] = [];
  for (const [minute, status] of statuses.entries()) ({ rows } = nextRows(report([finding(status)]), rows, at(minute)));
  return rows[0] as CheckRow;
}

test("since is when the present status began", () => {
  assert.equal(looks("ok", "warn", "warn").since, text(1));
  assert.equal(looks("warn", "fail", "fail").since, text(1));
});

test("something that swings between kinds of bad has been bad all the time", () => {
  const row = looks("ok", "warn", "unknown", "fail");
  assert.deepEqual([row.bad_since, row.since, row.last_ok_at], [text(1), text(3), text(0)]);
});

test("what is ok again is not bad any more", () => {
  const row = looks("fail", "ok");
  assert.deepEqual([row.bad_since, row.last_ok_at], [null, text(1)]);
});

test("a subject that turns up was ok at the look before, and is gone when it is not listed any more", () => {
  const first = nextRows(report([finding("ok")]), [], at(0));
  const second = nextRows(report([finding("fail"), finding("fail", "main/shop")]), first.rows, at(1));
  assert.equal(second.rows[1]?.last_ok_at, text(0));
  const third = nextRows(report([finding("ok")]), second.rows, at(2));
  assert.deepEqual(
    third.gone.map(({ subject }) => subject),
    ["main/shop"],
  );
});

test("a look that did not work ends nothing", () => {
  const before = nextRows(report([finding("fail"), finding("fail", "main/shop")]), [], at(0));
  const after = nextRows(report([finding("unknown")], { partial: true }), before.rows, at(1));
  assert.deepEqual(after.gone, []);
});

test("what nobody has looked at for five minutes is unknown", () => {
  const row = { status: "ok", detail: "fine", checked_at: text(0) } as const;
  assert.equal(shownStatus(row, at(5)).status, "ok");
  assert.equal(shownStatus(row, at(6)).status, "unknown");
});

test("the worst status is fail, then unknown, then warn; without any it is unknown", () => {
  assert.equal(worstOf(["ok", "warn", "fail", "unknown"]), "fail");
  assert.equal(worstOf(["ok", "unknown", "warn"]), "unknown");
  assert.equal(worstOf(["ok", "off"]), "ok");
  assert.equal(worstOf([]), "unknown");
});
