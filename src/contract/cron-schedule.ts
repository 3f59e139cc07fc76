/** When a job is due, in UTC. Created only by `parseSchedule`, so a next due minute always exists. */
export interface CronSchedule {
  readonly minutes: readonly number[];
  readonly hours: readonly number[];
  readonly days: readonly number[];
  readonly months: readonly number[];
  readonly weekdays: readonly number[];
  /** The field is a bare `*`. */
  readonly anyDay: boolean;
  readonly anyWeekday: boolean;
}

export type ParsedSchedule = CronSchedule | { readonly refused: string };

const minuteMs = 60_000;
const hourLengthMs = 60 * minuteMs;
const dayMs = 24 * hourLengthMs;
// The longest possible gap: 29 February across a century year that is no leap year, 8 years.
const searchDays = 8 * 366;

/** Parses five numeric fields: minute, hour, day of month, month, day of week (0 and 7 are Sunday), with lists, ranges and steps. */
export function parseSchedule(text: string): ParsedSchedule {
  const fields = text.trim().split(/[ \t]+/);
  if (fields.length !== 5) return { refused: "must have five fields: minute hour day month weekday" };
  const [minute, hour, day, month, weekday] = fields as [string, string, string, string, string];
  const minutes = parseField("minute", minute, [0, 59]);
  const hours = parseField("hour", hour, [0, 23]);
  const days = parseField("day of month", day, [1, 31]);
  const months = parseField("month", month, [1, 12]);
  const weekdays = parseField("day of week", weekday, [0, 7]);
  for (const field of [minutes, hours, days, months, weekdays]) if ("refused" in field) return field;
  const schedule = {
    ...({ minutes, hours, days, months } as Pick<CronSchedule, "minutes" | "hours" | "days" | "months">),
    weekdays: [...new Set((weekdays as number[]).map((each) => each % 7))],
    anyDay: day === "*",
    anyWeekday: weekday === "*",
  };
  return fires(schedule) ? schedule : { refused: "never happens: no such day in these months" };
}

type Range = readonly [least: number, most: number];

function parseField(name: string, text: string, range: Range): readonly number[] | { refused: string } {
  const values = new Set<number>();
  for (const item of text.split(",")) {
    const found = /^(?:(\*)|(\d{1,2})(?:-(\d{1,2}))?)(?:\/(\d{1,3}))?$/.exec(item);
    if (found === null) return { refused: `the ${name} "${item.slice(0, 20)}" is not a number, range or step` };
    const [from, to] = boundsOf(found, range);
    const step = Number(found[4] ?? 1);
    if (step < 1) return { refused: `the ${name} "${item}" has the step 0: a step is 1 or more` };
    if (Math.min(from, to) < range[0] || Math.max(from, to) > range[1]) {
      return { refused: `the ${name} "${item}" is not within ${range[0]} to ${range[1]}` };
    }
    if (from > to) {
      const [least, most] = boundsOf(["", "*"] as never, range);
      return {
        refused: `the ${name} "${item}" counts down: write ${to}-${from}, or two ranges in a list (${from}-${most},${least}-${to})`,
      };
    }
    for (let value = from; value <= to; value += step) values.add(value);
  }
  return [...values].sort((a, b) => a - b);
}

/** Returns the range of one list element. `*` is the whole range, and a number with a step runs to the end of the range: `10/20` is 10, 30, 50. */
function boundsOf([, star, first, last, step]: RegExpExecArray, [least, most]: Range): Range {
  if (star !== undefined) return [least, least === 0 && most === 7 ? 6 : most];
  const from = Number(first);
  if (last !== undefined) return [from, Number(last)];
  return [from, step === undefined ? from : most];
}

function fires({ days, months, anyDay, anyWeekday }: CronSchedule): boolean {
  if (anyDay || !anyWeekday) return true;
  const first = days[0] as number;
  // 2024 is a leap year, so 29 February counts.
  return months.some((month) => first <= new Date(Date.UTC(2024, month, 0)).getUTCDate());
}

/** Returns the first due minute after this moment, in milliseconds since 1970. */
export function nextAfter(schedule: CronSchedule, afterMs: number): number {
  const fromMs = (Math.floor(afterMs / minuteMs) + 1) * minuteMs;
  const midnightMs = midnightOf(fromMs);
  for (let day = 0; day <= searchDays; day += 1) {
    const startMs = midnightMs + day * dayMs;
    const dueMs = matchesDay(schedule, new Date(startMs)) ? firstOfDay(schedule, startMs, fromMs) : undefined;
    if (dueMs !== undefined) return dueMs;
  }
  throw new Error("a cron schedule has no next minute");
}

/** Returns the last due minute at or before this moment; undefined when there was none for 8 years. */
export function latestUntil(schedule: CronSchedule, untilMs: number): number | undefined {
  const midnightMs = midnightOf(untilMs);
  for (let day = 0; day <= searchDays; day += 1) {
    const startMs = midnightMs - day * dayMs;
    const dueMs = matchesDay(schedule, new Date(startMs)) ? lastOfDay(schedule, startMs, untilMs) : undefined;
    if (dueMs !== undefined) return dueMs;
  }
  return undefined;
}

function midnightOf(momentMs: number): number {
  return Math.floor(momentMs / dayMs) * dayMs;
}

/** When both day fields are restricted, matching either one is enough. */
function matchesDay(schedule: CronSchedule, date: Date): boolean {
  const { days, months, weekdays, anyDay, anyWeekday } = schedule;
  if (!months.includes(date.getUTCMonth() + 1)) return false;
  const isDay = days.includes(date.getUTCDate());
  const isWeekday = weekdays.includes(date.getUTCDay());
  return anyDay || anyWeekday ? isDay && isWeekday : isDay || isWeekday;
}

function firstOfDay({ hours, minutes }: CronSchedule, startMs: number, fromMs: number): number | undefined {
  for (const hour of hours) {
    const hourMs = startMs + hour * hourLengthMs;
    if (hourMs + hourLengthMs <= fromMs) continue;
    const minute = minutes.find((each) => hourMs + each * minuteMs >= fromMs);
    if (minute !== undefined) return hourMs + minute * minuteMs;
  }
  return undefined;
}

function lastOfDay({ hours, minutes }: CronSchedule, startMs: number, untilMs: number): number | undefined {
  for (const hour of hours.toReversed()) {
    const hourMs = startMs + hour * hourLengthMs;
    if (hourMs > untilMs) continue;
    const minute = minutes.findLast((each) => hourMs + each * minuteMs <= untilMs);
    if (minute !== undefined) return hourMs + minute * minuteMs;
  }
  return undefined;
}
