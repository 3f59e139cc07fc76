import assert from "node:assert/strict";
import { test } from "node:test";
import { seededRandom } from "../../test/support/seeded-random.ts";
import { latestUntil, nextAfter, parseSchedule, type CronSchedule } from "./cron-schedule.ts";

const minuteMs = 60_000;
const at = (text: string) => Date.parse(text);
const next = (text: string, after: string) => new Date(nextAfter(good(text), at(after))).toISOString();

function good(text: string): CronSchedule {
  const parsed = parseSchedule(text);
  if ("refused" in parsed) throw new Error(`${text}: ${parsed.refused}`);
  return parsed;
}

test("anything but five numeric fields within their ranges is refused", () => {
  const wrong = [
    [
      "",
      "* * * *",
      "* * * * * *",
      "@daily",
      "0 0 * * MON",
      "0 0 1 JAN *",
      "0 0 L * *",
      "0 0 ? * *",
      "0 0 * * 1#2",
      "0 0 1W * *",
    ],
    [
      "60 * * * *",
      "* 24 * * *",
      "* * 0 * *",
      "* * 32 * *",
      "* * * 0 *",
      "* * * 13 *",
      "* * * * 8",
      "-1 * * * *",
      "1.5 * * * *",
    ],
    [
      "5-1 * * * *",
      "*/0 * * * *",
      "1,,2 * * * *",
      ",1 * * * *",
      "1- * * * *",
      "*-5 * * * *",
      "1/ * * * *",
      "** * * * *",
      "001 * * * *",
    ],
    ["0\n0 * * *", "0 0 * * *\r\nX: y", "٠ * * * *", "0 0 * * * ; x"],
  ];
  for (const text of wrong.flat()) assert.ok("refused" in parseSchedule(text), JSON.stringify(text));
});

test("a range that counts down and a step of 0 are refused with what to write instead", () => {
  const refused = (text: string) => (parseSchedule(text) as { refused: string }).refused;
  assert.equal(
    refused("0 0 * * 6-1"),
    'the day of week "6-1" counts down: write 1-6, or two ranges in a list (6-6,0-1)',
  );
  assert.equal(
    refused("22-2 * * * *"),
    'the minute "22-2" counts down: write 2-22, or two ranges in a list (22-59,0-2)',
  );
  assert.match(refused("*/0 * * * *"), /the minute "\*\/0" has the step 0: a step is 1 or more/);
  assert.match(refused("70-10 * * * *"), /not within 0 to 59/);
});

test("a schedule that never happens is refused", () => {
  for (const text of ["0 0 31 2 *", "0 0 30 2 *", "0 0 31 4,6,9,11 *", "* * 30-31 2 *"])
    assert.ok("refused" in parseSchedule(text), text);
  for (const text of ["0 0 29 2 *", "0 0 31 2 1", "0 0 31 2,3 *", "0 0 30,1 2 *"])
    assert.ok(!("refused" in parseSchedule(text)), text);
});

test("29 February is found over a century without a leap day", () => {
  assert.equal(next("0 0 29 2 *", "2096-02-29T00:00:00Z"), "2104-02-29T00:00:00.000Z");
  assert.equal(latestUntil(good("0 0 29 2 *"), at("2104-02-28T23:59:00Z")), at("2096-02-29T00:00:00Z"));
});

test("where day of month and day of week are both set, either is enough", () => {
  assert.equal(next("0 0 13 * 5", "2026-02-13T00:00:00Z"), "2026-02-20T00:00:00.000Z");
  assert.equal(next("0 0 13 * *", "2026-02-13T00:00:00Z"), "2026-03-13T00:00:00.000Z");
  assert.equal(next("0 0 * * 5", "2026-02-13T00:00:00Z"), "2026-02-20T00:00:00.000Z");
});

test("0 and 7 are Sunday", () => {
  for (const text of ["0 0 * * 0", "0 0 * * 7", "0 0 * * 7-7"])
    assert.equal(next(text, "2026-02-13T00:00:00Z"), "2026-02-15T00:00:00.000Z");
});

test("the next minute comes strictly after, the latest may be now", () => {
  assert.equal(next("* * * * *", "2026-01-01T00:00:00.000Z"), "2026-01-01T00:01:00.000Z");
  assert.equal(next("* * * * *", "2025-12-31T23:59:59.999Z"), "2026-01-01T00:00:00.000Z");
  assert.equal(latestUntil(good("* * * * *"), at("2026-01-01T00:00:00.000Z")), at("2026-01-01T00:00:00.000Z"));
  assert.equal(latestUntil(good("*/5 * * * *"), at("2026-01-01T00:04:59.999Z")), at("2026-01-01T00:00:00.000Z"));
});

// A second, simple implementation of the rules, minute by minute.
const ranges = [
  [0, 59],
  [0, 23],
  [1, 31],
  [1, 12],
  [0, 7],
] as const;

function has(field: string, place: number, value: number): boolean {
  const [least, most] = ranges[place] as readonly [number, number];
  return field.split(",").some((item) => {
    const [span = "", step] = item.split("/");
    const [from, to = step === undefined ? from : String(most)] =
      span === "*" ? [String(least), String(most)] : span.split("-");
    return value >= Number(from) && value <= Number(to) && (value - Number(from)) % Number(step ?? 1) === 0;
  });
}

/** Returns a function that decides whether a schedule is due in a minute, from the values of each field. */
function dueMinutes(text: string): (ms: number) => boolean {
  const fields = text.split(" ");
  const [minutes, hours, days, months, weekdays] = fields.map((field, place) => valuesOf(field, place)) as Values;
  if (weekdays.has(7)) weekdays.add(0);
  const isEitherEnough = fields[2] !== "*" && fields[4] !== "*";
  return (ms) => {
    const date = new Date(ms);
    if (!minutes.has(date.getUTCMinutes()) || !hours.has(date.getUTCHours())) return false;
    const isDay = days.has(date.getUTCDate());
    const isWeekday = weekdays.has(date.getUTCDay());
    return months.has(date.getUTCMonth() + 1) && (isEitherEnough ? isDay || isWeekday : isDay && isWeekday);
  };
}

type Values = [Set<number>, Set<number>, Set<number>, Set<number>, Set<number>];

function valuesOf(field: string, place: number): Set<number> {
  const [least, most] = ranges[place] as readonly [number, number];
  const all = Array.from({ length: most - least + 1 }, (_, index) => least + index);
  return new Set(all.filter((value) => has(field, place, value)));
}

function randomField(random: (most: number) => number, place: number): string {
  const [least, most] = ranges[place] as readonly [number, number];
  const one = () => least + random(most - least);
  const item = () => {
    const [a, b] = [one(), one()].sort((x, y) => x - y) as [number, number];
    return [`${a}`, `${a}-${b}`, `${a}-${b}/${1 + random(9)}`, `*/${1 + random(most)}`, `${a}/${1 + random(9)}`][
      random(4)
    ] as string;
  };
  if (random(2) === 0) return "*";
  return Array.from({ length: 1 + random(2) }, item).join(",");
}

test("next and latest agree with looking at every minute, for random schedules", () => {
  const fraction = seededRandom();
  const random = (most: number) => Math.floor(fraction() * (most + 1));
  for (let round = 0; round < 400; round += 1) {
    const text = ranges.map((_, place) => randomField(random, place)).join(" ");
    const parsed = parseSchedule(text);
    if ("refused" in parsed) continue;
    const isDue = dueMinutes(text);
    const from = at("2027-12-20T00:00:00Z") + random(100 * 24 * 60) * minuteMs + random(59_999);
    const found = nextAfter(parsed, from);
    const first = Math.floor(from / minuteMs) * minuteMs;
    const span = Math.min((found - first) / minuteMs, 3_000);
    for (let step = 1; step < span; step += 1)
      assert.ok(!isDue(first + step * minuteMs), `${text} is due before ${new Date(found).toISOString()}`);
    assert.ok(isDue(found), `${text} at ${new Date(found).toISOString()}`);
    assert.equal(latestUntil(parsed, found), found);
    assert.equal(latestUntil(parsed, found + minuteMs * span - minuteMs) !== undefined, true);
    assert.ok(
      (latestUntil(parsed, found - 1) ?? 0) <= from,
      `${text}: nothing lies between ${new Date(from).toISOString()} and its next`,
    );
  }
});
