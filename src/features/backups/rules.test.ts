import assert from "node:assert/strict";
import { test } from "node:test";
import { beyondLimit, endedFinals, expired, isDue, lastDue, type DailyState, type KeptBackup } from "./rules.ts";

const day = 24 * 60 * 60_000;
const wholeDay = { startHour: 0, hours: 24 };
const keep = { daily: 7, weekly: 4, manual: 2 };
const now = new Date("2026-03-18T12:00:00.000Z");

let number = 0;
function backup(daysAgo: number, more: Partial<KeptBackup> = {}): KeptBackup {
  number += 1;
  const at = now.getTime() - daysAgo * day;
  const id = `bak_${String(at).padStart(15, "0")}${number}`;
  return {
    id,
    origin: "daily",
    status: "completed",
    created_at: new Date(at).toISOString(),
    is_verified: false,
    ...more,
  };
}

test("an automatic backup was last due within the day before, in any window and at any time of the day", () => {
  for (const window of [
    wholeDay,
    { startHour: 22, hours: 6 },
    { startHour: 12, hours: 24 },
    { startHour: 23, hours: 1 },
  ])
    for (let hour = 0; hour < 24; hour += 1)
      for (let i = 0; i < 20; i += 1) {
        const at = new Date(Date.UTC(2026, 0, 20, hour, 45));
        const age = at.getTime() - lastDue(`prj_${i}`, window, at).getTime();
        assert.ok(age >= 0 && age < day, `${window.startHour}+${window.hours} at ${hour}: ${age}`);
      }
});

test("a project's moment comes once a day, and different projects have different ones", () => {
  const moments = Array.from({ length: 200 }, (_, i) => lastDue(`prj_${i}`, wholeDay, now).getTime());
  for (const moment of moments) assert.ok(moment <= now.getTime() && moment > now.getTime() - day);
  assert.ok(new Set(moments).size > 150);
  const first = lastDue("prj_1", wholeDay, now);
  assert.equal(lastDue("prj_1", wholeDay, new Date(first.getTime() + day - 1)).getTime(), first.getTime());
  assert.equal(lastDue("prj_1", wholeDay, new Date(first.getTime() + day)).getTime(), first.getTime() + day);
});

test("the window is kept", () => {
  for (let i = 0; i < 100; i += 1) {
    const hour = lastDue(`prj_${i}`, { startHour: 22, hours: 4 }, now).getUTCHours();
    assert.ok([22, 23, 0, 1].includes(hour), String(hour));
  }
});

test("a backup is due when none was begun since the moment, and again after a failure, three times", () => {
  const due = lastDue("prj_1", wholeDay, now).getTime();
  const at = (ms: number) => new Date(due + ms).toISOString();
  const state = (more: Partial<DailyState>): DailyState => ({
    project_id: "prj_1",
    ready_at: at(-day),
    last_at: null,
    last_status: null,
    failures: 0,
    ...more,
  });
  const asked = (more: Partial<DailyState>, minutes = 60) =>
    isDue(state(more), wholeDay, new Date(due + minutes * 60_000));
  assert.ok(asked({}));
  assert.ok(asked({ last_at: at(-day), last_status: "completed" }));
  assert.ok(!asked({ last_at: at(1000), last_status: "completed" }));
  assert.ok(!asked({ last_at: at(1000), last_status: "running" }));
  assert.ok(!asked({ ready_at: at(1000) }));
  assert.ok(!asked({ ready_at: null }));
  assert.ok(asked({ last_at: at(1000), last_status: "failed", failures: 1 }));
  assert.ok(!asked({ last_at: at(1000), last_status: "failed", failures: 1 }, 20));
  assert.ok(!asked({ last_at: at(1000), last_status: "failed", failures: 3 }));
});

test("seven daily and four weekly backups stay", () => {
  const all = Array.from({ length: 60 }, (_, i) => backup(i));
  const gone = new Set(expired(all, keep, now));
  const stay = all.filter(({ id }) => !gone.has(id)).map(({ created_at }) => created_at.slice(0, 10));
  // The weeks end on Sundays: the 15th, the 8th and the 1st of March. The 15th is also one of the seven days.
  assert.deepEqual(stay, [
    "2026-03-18",
    "2026-03-17",
    "2026-03-16",
    "2026-03-15",
    "2026-03-14",
    "2026-03-13",
    "2026-03-12",
    "2026-03-08",
    "2026-03-01",
  ]);
});

test("of several on one day the newest stays", () => {
  const [early, late] = [backup(1.2), backup(1.1)];
  assert.deepEqual(expired([early, late], keep, now), [early.id]);
});

test("the newest verified one and the newest of all always stay", () => {
  const verified = backup(300, { is_verified: true });
  const older = backup(301, { is_verified: true });
  const all = [...Array.from({ length: 40 }, (_, i) => backup(i)), verified, older];
  const gone = expired(all, { daily: 0, weekly: 0, manual: 0 }, now);
  assert.ok(!gone.includes(verified.id) && !gone.includes((all[0] as KeptBackup).id));
  assert.ok(gone.includes(older.id));
});

test("those that somebody asked for stay up to their own number, and count for nothing else", () => {
  const manual = [0, 1, 2, 3].map((days) => backup(days, { origin: "manual" }));
  const daily = backup(1.5);
  assert.deepEqual(
    expired([...manual, daily], keep, now),
    manual.slice(2).map(({ id }) => id),
  );
});

test("failed ones are forgotten after a month", () => {
  const [young, old] = [backup(29, { status: "failed" }), backup(31, { status: "failed" })];
  assert.deepEqual(expired([young, old, backup(0)], keep, now), [old.id]);
});

test("beyond the size that a project's backups may have the oldest automatic ones go, then the oldest others", () => {
  const sized = (daysAgo: number, more: Partial<KeptBackup> = {}) => ({ ...backup(daysAgo, more), local_bytes: 10 });
  const manual = sized(9, { origin: "manual" });
  const verified = sized(8, { is_verified: true });
  const daily = [7, 6, 5].map((daysAgo) => sized(daysAgo));
  const elsewhere = { ...sized(4), local_bytes: 0 };
  const newest = sized(1);
  const all = [manual, verified, ...daily, elsewhere, newest];
  const idsOf = (backups: readonly KeptBackup[]) => backups.map(({ id }) => id);
  assert.deepEqual(beyondLimit(all, 60), []);
  assert.deepEqual(beyondLimit(all, 45), idsOf(daily.slice(0, 2)));
  assert.deepEqual(beyondLimit(all, 25), idsOf([...daily, manual]));
  // The newest backup and the newest verified one stay, however small the limit is.
  assert.deepEqual(beyondLimit(all, 0), idsOf([...daily, manual]));
});

test("a final backup ends with its days, or when newer ones need its room", () => {
  const finals = [400, 30, 20, 10].map((daysAgo) => ({ ...backup(daysAgo, { origin: "final" }), local_bytes: 10 }));
  const ids = finals.map(({ id }) => id);
  assert.deepEqual(endedFinals(finals, { days: 0, bytes: 40 }, now), []);
  assert.deepEqual(endedFinals(finals, { days: 365, bytes: 40 }, now), ids.slice(0, 1));
  assert.deepEqual(endedFinals(finals, { days: 365, bytes: 25 }, now).toSorted(), ids.slice(0, 2).toSorted());
  assert.deepEqual(endedFinals(finals, { days: 365, bytes: 5 }, now).toSorted(), ids.slice(0, 3).toSorted());
});

test("a backup dated in the future takes no other's place, and stays", () => {
  const all = [backup(-300), backup(-365), ...[1, 2, 3, 4, 5, 6, 7].map((days) => backup(days))];
  assert.deepEqual(expired(all, { daily: 7, weekly: 0, manual: 0 }, now), []);
});
