import { announceSleep, endSleep, fallAsleep } from "../../features/sleep/sleep.ts";
import type { Task, Platform } from "../platform.ts";

const periodMs = 15_000;

/** Stops projects that nobody asks for; see `fallAsleep`. The edge wakes them. */
export function sleepTask({ db, wakeups, ports }: Platform): Task {
  return {
    name: "sleep",
    periodMs,
    topics: [],
    async run() {
      const open = await ports.edge.openRequests();
      const changed = [...(await endSleep(db)), ...(await fallAsleep(db, [...open.keys()]))];
      for (const id of changed) await announceSleep({ db, wakeups }, id);
      return { detail: `${changed.length} changed` };
    },
  };
}
