import { BuildRefused } from "../detection/failures.ts";
import type { BuildRequest } from "../ports/builder.ts";
import type { Stage } from "../ports/failure.ts";

/** When a build must end: it is cancelled, or its time is over. */
export interface TimeLimit {
  readonly signal: AbortSignal;
  /** Throws when the build must end: `build_timeout`, or the cancellation's reason. */
  check(stage?: Stage): void;
  /** Waits for work that takes no signal, but no longer than the build may. */
  race<T>(work: Promise<T>): Promise<T>;
}

export function limitTime({ signal: cancelled, limits }: BuildRequest): TimeLimit {
  const deadline = AbortSignal.timeout(limits.timeoutMs);
  const signal = AbortSignal.any([cancelled, deadline]);
  const check = (stage: Stage = "build") => {
    cancelled.throwIfAborted();
    if (!deadline.aborted) return;
    const summary = `The build took longer than ${Math.round(limits.timeoutMs / 1000)} s.`;
    throw new BuildRefused("build_timeout", { stage, summary });
  };
  return {
    signal,
    check,
    async race(work) {
      const { promise, reject } = Promise.withResolvers<never>();
      const abort = () => reject(signal.reason as Error);
      if (signal.aborted) abort();
      signal.addEventListener("abort", abort, { once: true });
      try {
        return await Promise.race([work, promise]);
      } finally {
        signal.removeEventListener("abort", abort);
      }
    },
  };
}
