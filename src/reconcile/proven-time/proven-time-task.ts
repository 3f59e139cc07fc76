import { endLongPauses, proveTime } from "../../store/proven-time.ts";
import type { Task, Platform } from "../platform.ts";

// Smaller steps back are corrections, as of cron's schedules.
const setBackMs = 1000;

/** Advances the time that deletions go by; nothing waits for a time that the clock was set back from. In one process only. */
export function provenTimeTask({ db, clock }: Platform, monotonicMs: () => number = () => performance.now()): Task {
  let lastMs: number | undefined;
  let lastNowMs = Infinity;
  return {
    name: "proven-time",
    periodMs: 10_000,
    topics: [],
    async run() {
      const [tickMs, now] = [monotonicMs(), clock.now()];
      await proveTime(db, { now, passedMs: tickMs - (lastMs ?? tickMs) });
      lastMs = tickMs;
      if (now.getTime() < lastNowMs - setBackMs) await endLongPauses(db);
      lastNowMs = now.getTime();
      return { detail: "" };
    },
  };
}
