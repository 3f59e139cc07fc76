import assert from "node:assert/strict";
import { test } from "node:test";
import { formatCursor, nameImports, parseCursor, planDue, storedSchedule, type NamedCron } from "./rules.ts";

const minuteMs = 60_000;
const noon = Date.parse("2026-03-01T12:00:00.000Z");
const plan = (schedule: string, fromMinute: number, nowMs: number) =>
  planDue(storedSchedule(schedule), { fromMs: noon + fromMinute * minuteMs, nowMs, keep: 1000 });
const minutes = (times: readonly number[]) => times.map((time) => (time - noon) / minuteMs);

test("a job on time runs its one minute and comes to its next", () => {
  const { startMs, missedMs, nextMs } = plan("* * * * *", 0, noon + 5);
  assert.deepEqual([startMs, missedMs, nextMs], [noon, [], noon + minuteMs]);
});

test("of several due minutes the latest runs and the earlier ones were missed", () => {
  const { startMs, missedMs, nextMs } = plan("*/2 * * * *", 0, noon + 9 * minuteMs);
  assert.deepEqual([startMs, minutes(missedMs), nextMs], [noon + 8 * minuteMs, [6, 4, 2, 0], noon + 10 * minuteMs]);
});

test("a latest start of exactly 10 minutes runs, one of a millisecond more was missed", () => {
  const on = plan("0 * * * *", 0, noon + 10 * minuteMs);
  assert.deepEqual([on.startMs, on.missedMs], [noon, []]);
  const over = plan("0 * * * *", 0, noon + 10 * minuteMs + 1);
  assert.deepEqual([over.startMs, over.missedMs], [undefined, [noon]]);
});

test("nothing is due when the schedule names no minute since", () => {
  assert.deepEqual(plan("0 0 1 1 *", 0, noon + minuteMs), {
    startMs: undefined,
    missedMs: [],
    nextMs: Date.parse("2027-01-01T00:00:00Z"),
  });
});

test("every missed minute is planned, up to as many runs as are kept, the newest ones", () => {
  const day = plan("* * * * *", 0, noon + 900 * minuteMs);
  assert.equal(day.missedMs.length, 900);
  assert.equal(day.missedMs.at(-1), noon);
  const span = { fromMs: noon, nowMs: noon + 900 * minuteMs, keep: 3 };
  const { startMs, missedMs } = planDue(storedSchedule("* * * * *"), span);
  assert.deepEqual(minutes([startMs ?? 0, ...missedMs]), [900, 899, 898]);
});

test("a long downtime is planned in bounded work", () => {
  const { startMs, missedMs } = plan("* * * * *", 0, noon + 10 * 365 * 24 * 60 * minuteMs);
  assert.notEqual(startMs, undefined);
  assert.equal(missedMs.length, 999);
  assert.equal(new Set(missedMs).size, 999);
});

const names = (lines: [string, string][], existing: NamedCron[] = []) =>
  nameImports(
    lines.map(([path, schedule]) => ({ path, command: null, schedule })),
    existing,
  );
const namesOnly = (lines: [string, string][], existing: NamedCron[] = []) =>
  names(lines, existing).map(({ name }) => name);

test("an imported job is named after its path", () => {
  const named = namesOnly([
    ["/api/daily", "0 0 * * *"],
    ["/", "0 0 * * *"],
    ["/a?x=1&y=[2]", "0 0 * * *"],
    ["/%C3%A9", "0 0 * * *"],
    [`/${"x".repeat(500)}`, "0 0 * * *"],
  ]);
  assert.deepEqual(named, ["api-daily", "root", "a-x-1-y-2", "C3-A9", "x".repeat(55)]);
});

test("one path with two schedules, and two paths of one name, get a short hash", () => {
  const twice = namesOnly([
    ["/a", "0 0 * * *"],
    ["/a", "0 1 * * *"],
  ]);
  assert.equal(twice[0], "a");
  assert.match(twice[1] ?? "", /^a-[0-9a-f]{8}$/);
  assert.match(
    namesOnly([
      ["/a/b", "0 0 * * *"],
      ["/a-b", "0 0 * * *"],
    ])[1] ?? "",
    /^a-b-[0-9a-f]{8}$/,
  );
  const owner = { name: "a", path: "/other", command: null, schedule: "0 0 * * *" };
  assert.match(namesOnly([["/a", "0 0 * * *"]], [owner])[0] ?? "", /^a-[0-9a-f]{8}$/);
});

test("a second import of the same lines, in any order, names the same jobs", () => {
  const lines: [string, string][] = [
    ["/a", "0 0 * * *"],
    ["/a", "0 1 * * *"],
    ["/b", "0 0 * * *"],
    ["/a", "0 0 * * *"],
  ];
  const first = names(lines);
  assert.equal(first.length, 3);
  const sorted = (jobs: readonly NamedCron[]) => [...jobs].sort((x, y) => (x.name < y.name ? -1 : 1));
  assert.deepEqual(sorted(names(lines, [...first])), sorted(first));
  assert.deepEqual(sorted(names(lines.toReversed(), [...first])), sorted(first));
});

test("a changed schedule changes the job of the path", () => {
  const old = { name: "a", path: "/a", command: null, schedule: "0 0 * * *" };
  assert.deepEqual(names([["/a", "5 0 * * *"]], [old]), [{ ...old, schedule: "5 0 * * *" }]);
});

test("a cursor is read back, and nothing else is one", () => {
  const place = { scheduled_at: "2026-03-01T12:00:00.000Z", id: "run_01abc" };
  assert.deepEqual(parseCursor(formatCursor(place)), place);
  for (const text of [
    "",
    "x",
    "2026-99-99T12:00:00.000Z_run_1",
    "2026-03-01T12:00:00.000Z_run_1'",
    "2026-03-01T12:00:00.000Z",
  ])
    assert.equal(parseCursor(text), undefined, text);
});
