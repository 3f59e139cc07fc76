import { Refused } from "../features/context.ts";
import { createFairPlaces, type PlaceLimits } from "../kit/fair-places.ts";
import { linkSignals } from "../kit/link-signals.ts";

export interface ChangeLimits extends PlaceLimits {
  /** How long a change waits for a slot before it is refused. */
  readonly waitMs: number;
}

/** Limits how many transactions of changes run at a time, together and for each organization. */
export interface ChangeSlots {
  /** Runs the work once there is a slot. Refuses with `rate_limited` when the organization's changes wait too long or are too many. */
  run<T>(orgId: string, gone: AbortSignal, work: () => Promise<T>): Promise<T>;
}

const retryAfterSeconds = 2;

export function createChangeSlots(limits: ChangeLimits): ChangeSlots {
  const places = createFairPlaces(limits);
  return {
    async run(orgId, gone, work) {
      // Changes of one object also exclude each other, by row locks, so each request has a key of its own here.
      const place = { owner: orgId, key: crypto.randomUUID() };
      const wait = linkSignals(gone);
      const timer = setTimeout(() => wait.abort(tooMany()), limits.waitMs);
      const leave = await places.take(place, wait.signal).finally(() => {
        clearTimeout(timer);
        wait.release();
      });
      if (leave === null) throw tooMany();
      return work().finally(leave);
    },
  };
}

function tooMany(): Refused {
  const error = "Too many changes of this organization are waiting for each other. Try again in a moment.";
  return new Refused("rate_limited", { error, retryAfterSeconds });
}
