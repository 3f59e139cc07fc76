import { BuildRefused } from "../detection/failures.ts";
import type { BuildRequest } from "../ports/builder.ts";
import type { Stage } from "../ports/failure.ts";

/** Limits a build's time: it ends when it is cancelled, is refused or times out. */
export interface TimeLimit {
  readonly signal: AbortSignal;
  /** Throws `build_timeout` or the reason of the cancellation or refusal when the build must end. */
  check(stage?: Stage): void;
  /** Waits for work that accepts no signal, but no longer than the build may run. */
  race<T>(work: Promise<T>): Promise<T>;
}

/** Aborting `refused` ends the build, too, with the signal's reason. The caller uses it for limits that it watches itself. */
export function limitTime({ signal: cancelled, limits }: BuildRequest, refused?: AbortSignal): TimeLimit {
  const deadline = AbortSignal.timeout(limits.timeoutMs);
  const signal = AbortSignal.any([cancelled, deadline, ...(refused === undefined ? [] : [refused])]);
  const check = (stage: Stage = "build") => {
    cancelled.throwIfAborted();
    refused?.throwIfAborted();
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
