import type { CronSchedule } from "../../../contract/cron-schedule.ts";

const mostTimes = 4;
const weekdayNames = ["Sundays", "Mondays", "Tuesdays", "Wednesdays", "Thursdays", "Fridays", "Saturdays"];
const monthFormat = new Intl.DateTimeFormat("en-GB", { month: "long", timeZone: "UTC" });
const listFormat = new Intl.ListFormat("en-GB");

/** Returns a schedule in words: `every day at 03:00 UTC`, `every 5 minutes, on Mondays to Fridays`. */
export function scheduleInWords(schedule: CronSchedule): string {
  const days = daysOf(schedule);
  const months = schedule.months.length === 12 ? "" : `in ${list(schedule.months.map(monthName))}`;
  const said = timesOf(schedule);
  const times = /\d:\d/.test(said) ? `${said} UTC` : said;
  const isAt = times.startsWith("at ");
  if (days === "" && isAt) return [`every day ${times}`, months].filter(isGiven).join(", ");
  return [times, days, months].filter(isGiven).join(isAt ? " " : ", ");
}

const isGiven = (part: string) => part !== "";
const list = (parts: readonly string[]) => listFormat.format(parts);
const two = (value: number) => String(value).padStart(2, "0");
const monthName = (month: number) => monthFormat.format(Date.UTC(2024, month - 1));

function timesOf({ minutes, hours }: CronSchedule): string {
  const [minute = 0] = minutes;
  const step = stepOf(minutes, 60);
  const isAnyHour = hours.length === 24;
  if (step !== undefined && isAnyHour) return step === 1 ? "every minute" : `every ${step} minutes`;
  if (minutes.length * hours.length <= mostTimes)
    return `at ${list(hours.flatMap((hour) => minutes.map((each) => `${two(hour)}:${two(each)}`)))}`;
  const within = step === undefined ? atMinutes(minutes) : `every ${step === 1 ? "minute" : `${step} minutes`}`;
  const hourStep = stepOf(hours, 24);
  if (minutes.length === 1 && hourStep !== undefined) {
    const every = hourStep === 1 ? "every hour" : `every ${hourStep} hours`;
    return minute === 0 ? every : `${every}, ${within}`;
  }
  return isAnyHour ? `every hour, ${within}` : `${within}, ${hoursOf(hours)}`;
}

function atMinutes(minutes: readonly number[]): string {
  return `${list(minutes.map(String))} ${minutes.length === 1 && minutes[0] === 1 ? "minute" : "minutes"} past`;
}

function hoursOf(hours: readonly number[]): string {
  const [first = 0] = hours;
  const last = hours.at(-1) ?? first;
  if (hours.length > 1 && last - first === hours.length - 1) return `from ${two(first)}:00 to ${two(last)}:59`;
  return `in the hours of ${list(hours.map((hour) => `${two(hour)}:00`))}`;
}

/** Returns the step of values that are evenly spread over the whole range and start at 0; undefined for other values. */
function stepOf(values: readonly number[], range: number): number | undefined {
  const step = range / values.length;
  return values.length > 1 && values.every((value, index) => value === index * step) ? step : undefined;
}

/** Returns the days in words. If both fields are given, cron runs a job on the days of either one. */
function daysOf({ days, weekdays, anyDay, anyWeekday }: CronSchedule): string {
  const ofMonth = anyDay || days.length === 31 ? "" : `on day ${list(days.map(String))} of the month`;
  const ofWeek = anyWeekday || weekdays.length === 7 ? "" : `on ${weekdayWords(weekdays)}`;
  if (ofMonth !== "" && ofWeek !== "") return `${ofMonth} and ${ofWeek}`;
  // If either field names every day without being a bare star, the job runs every day.
  if ((ofMonth === "" && !anyDay) || (ofWeek === "" && !anyWeekday)) return "";
  return ofMonth + ofWeek;
}

function weekdayWords(weekdays: readonly number[]): string {
  const sorted = weekdays.toSorted((a, b) => a - b);
  if (sorted.join() === "1,2,3,4,5") return "Mondays to Fridays";
  return list(sorted.map((day) => weekdayNames[day] ?? ""));
}
