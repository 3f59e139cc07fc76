import { LRUCache } from "lru-cache";
import { Refused } from "../features/context.ts";

/** How much one caller may ask for in a minute. */
export interface RateLimits {
  readonly readsPerMinute: number;
  readonly writesPerMinute: number;
  /** Requests of one address whose token is none. */
  readonly refusedPerMinute: number;
}

export type Rate = keyof RateLimits;

/** Counts requests in this process, a minute at a time. Several control planes on one database each count for themselves. */
export interface RateLimiter {
  /** One more request of this caller. What is left, and headers that say so; `refused` when there was nothing left. */
  count(rate: Rate, caller: string): Counted;
}

export interface Counted {
  readonly headers: Readonly<Record<string, string>>;
  readonly refused: Refused | undefined;
}

interface Minute {
  readonly endsAtMs: number;
  count: number;
}

const minuteMs = 60_000;
// Bounds the memory. Whoever could push others out would need as many valid tokens, or addresses.
const mostCallers = 50_000;

export function createRateLimiter(limits: RateLimits): RateLimiter {
  const minutes = new LRUCache<string, Minute>({ max: mostCallers });
  return {
    count(rate, caller) {
      const key = `${rate} ${caller}`;
      const nowMs = performance.now();
      const known = minutes.get(key);
      const minute = known !== undefined && known.endsAtMs > nowMs ? known : { endsAtMs: nowMs + minuteMs, count: 0 };
      if (minute !== known) minutes.set(key, minute);
      minute.count += 1;
      const left = limits[rate] - minute.count;
      // Sums of fractions may come out a little above a minute.
      const seconds = Math.min(60, Math.ceil((minute.endsAtMs - nowMs) / 1000));
      const headers = {
        "ratelimit-limit": String(limits[rate]),
        "ratelimit-remaining": String(Math.max(0, left)),
        "ratelimit-reset": String(seconds),
      };
      return { headers, refused: left < 0 ? tooMany(limits[rate], seconds) : undefined };
    },
  };
}

function tooMany(limit: number, seconds: number): Refused {
  const error = `More than ${limit} such requests in a minute. Try again in ${seconds} s.`;
  return new Refused("rate_limited", { error, retryAfterSeconds: seconds });
}
