import { BuildRefused, toFailure } from "../detection/failures.ts";
import type { BuildOutcome, BuildRequest } from "../ports/builder.ts";
import type { BuildLog } from "./build-log.ts";
import type { TimeLimit } from "./time-limit.ts";

interface Ending {
  readonly request: Pick<BuildRequest, "signal">;
  readonly log: BuildLog;
  readonly time: TimeLimit;
}

/** Returns how a build ended that threw, and logs it; throws errors that are the machine's fault. */
export function outcomeOfError(error: unknown, { request, log, time }: Ending): BuildOutcome {
  if (request.signal.aborted) {
    log.error("The build was cancelled.");
    return { outcome: "cancelled" };
  }
  const failure = toFailure(refusalOf(error, time), log.tail(), log.redact);
  log.error(failure.summary);
  log.error(failure.hint);
  return { outcome: "failed", failure };
}

function refusalOf(error: unknown, time: TimeLimit): BuildRefused {
  if (error instanceof BuildRefused) return error;
  try {
    time.check();
  } catch (late) {
    if (late instanceof BuildRefused) return late;
  }
  throw error;
}
