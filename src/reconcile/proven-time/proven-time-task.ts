import { proveTime } from "../../store/proven-time.ts";
import type { Task } from "../driver.ts";
import type { Platform } from "../platform.ts";

/** Advances the time that deletions go by. Runs in one process only: each would add its own time. */
export function provenTimeTask({ db, clock }: Platform, monotonicMs: () => number = () => performance.now()): Task {
  let lastMs: number | undefined;
  return {
    name: "proven-time",
    periodMs: 10_000,
    topics: [],
    async run() {
      const tickMs = monotonicMs();
      await proveTime(db, { now: clock.now(), passedMs: tickMs - (lastMs ?? tickMs) });
      lastMs = tickMs;
      return { detail: "" };
    },
  };
}
