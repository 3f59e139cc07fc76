import { LRUCache } from "lru-cache";
import { Refused } from "../features/context.ts";

/** How many requests per minute a caller may send. */
export interface RateLimits {
  readonly readsPerMinute: number;
  readonly writesPerMinute: number;
  /** Requests of one address without a valid token. */
  readonly refusedPerMinute: number;
}

export type Rate = keyof RateLimits;

/** Counts requests per minute, in this process only: several control planes on one database count separately. */
export interface RateLimiter {
  /** Counts one request of this caller and returns the rate limit headers; `refused` is set when the limit is exceeded. */
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
// Bounds the memory. Evicting other callers would take as many valid tokens or addresses.
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
      // Floating-point sums may end slightly above a minute.
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
