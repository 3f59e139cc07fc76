import assert from "node:assert/strict";
import { test } from "node:test";
import { parseSchedule, type CronSchedule } from "../../../contract/cron-schedule.ts";
import { scheduleInWords } from "./schedule-words.ts";

const words = (text: string) => scheduleInWords(parseSchedule(text) as CronSchedule);

test("a schedule is said in words", () => {
  const expected = {
    "* * * * *": "every minute",
    "*/5 * * * *": "every 5 minutes",
    "*/7 * * * *": "every hour, 0, 7, 14, 21, 28, 35, 42, 49 and 56 minutes past",
    "0 * * * *": "every hour",
    "1 * * * *": "every hour, 1 minute past",
    "0 */2 * * *": "every 2 hours",
    "30 */6 * * *": "every day at 00:30, 06:30, 12:30 and 18:30 UTC",
    "0 3 * * *": "every day at 03:00 UTC",
    "0 7,19 * * 1": "at 07:00 and 19:00 UTC on Mondays",
    "*/10 9-17 * * 1-5": "every 10 minutes, from 09:00 to 17:59 UTC, on Mondays to Fridays",
    "*/10 5 * * *": "every 10 minutes, in the hours of 05:00 UTC",
    "0 0 1 * *": "at 00:00 UTC on day 1 of the month",
    "0 0 1,15 1,7 *": "at 00:00 UTC on day 1 and 15 of the month in January and July",
    "0 12 13 * 5": "at 12:00 UTC on day 13 of the month and on Fridays",
    "0 6 * 12 *": "every day at 06:00 UTC, in December",
    "0 0 * * 0-6": "every day at 00:00 UTC",
  };
  assert.deepEqual(Object.fromEntries(Object.keys(expected).map((text) => [text, words(text)])), expected);
});
