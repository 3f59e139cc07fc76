import { nextAfter, parseSchedule, type CronSchedule } from "../../../contract/cron-schedule.ts";
import { scheduleInWords } from "./schedule-words.ts";

const shown = 3;
const format = new Intl.DateTimeFormat("en-GB", {
  weekday: "short",
  day: "numeric",
  month: "short",
  hour: "2-digit",
  minute: "2-digit",
});

/** Shows a schedule in words with its next runs in the local zone, or why it is invalid. */
export function NextRuns({ schedule }: { readonly schedule: string }) {
  const parsed = parseSchedule(schedule);
  if ("refused" in parsed)
    return (
      <span className={schedule === "" ? "" : "text-bad"}>
        {schedule === "" ? "minute hour day month weekday, in UTC" : parsed.refused}
      </span>
    );
  return (
    <>
      <ScheduleWords schedule={schedule} />. Next: {nextRuns(parsed).join(" · ")} (your time)
    </>
  );
}

/** Shows a schedule in words: `Every day at 03:00 UTC`. */
export function ScheduleWords({ schedule }: { readonly schedule: string }) {
  const parsed = parseSchedule(schedule);
  if ("refused" in parsed) return null;
  const words = scheduleInWords(parsed);
  return (
    <>
      {words[0]?.toUpperCase()}
      {words.slice(1)}
    </>
  );
}

function nextRuns(schedule: CronSchedule): string[] {
  const runs: number[] = [];
  for (let at = Date.now(); runs.length < shown; runs.push(at)) at = nextAfter(schedule, at);
  return runs.map((at) => format.format(at));
}
