import { nextAfter, parseSchedule } from "../../../contract/cron-schedule.ts";

const shown = 3;
const format = new Intl.DateTimeFormat("en-GB", {
  weekday: "short",
  day: "numeric",
  month: "short",
  hour: "2-digit",
  minute: "2-digit",
});

/** The next runs of a schedule in the local zone, or why it is none. */
export function NextRuns({ schedule }: { readonly schedule: string }) {
  const parsed = parseSchedule(schedule);
  if ("refused" in parsed)
    return (
      <span className={schedule === "" ? "" : "text-bad"}>
        {schedule === "" ? "minute hour day month weekday, in UTC" : parsed.refused}
      </span>
    );
  const runs: number[] = [];
  for (let at = Date.now(); runs.length < shown; runs.push(at)) at = nextAfter(parsed, at);
  return <>Next: {runs.map((at) => format.format(at)).join(" · ")} (your time)</>;
}
