import type { Step } from "../../../detection/plan.ts";
import type { BuildLimits } from "../../../ports/builder.ts";
import type { BuildLog } from "../../../building/build-log.ts";
import type { TimeLimit } from "../../../building/time-limit.ts";

interface Watched {
  kill(): void;
  /** Processor time used by the step so far; undefined if it cannot be measured. */
  cpuSeconds(): number | undefined;
}

interface Watching {
  readonly limits: Pick<BuildLimits, "silenceMs">;
  readonly time: Pick<TimeLimit, "signal">;
  readonly log: Pick<BuildLog, "detail">;
}

const reportEveryMs = 10_000;
const pollEveryMs = 500;
// Processor seconds between two reports (10 s) that count as activity; an idle process that wakes up now and then uses less.
const busySeconds = 0.5;

/**
 * Stops the step when the build must stop or the step hangs, and reports every 10 s of silence. A step hangs when it prints nothing and
 * computes nothing: installs and compilers may work for minutes without output.
 */
export function watchStep({ limits, time, log }: Watching, step: Step, { kill, cpuSeconds }: Watched) {
  const stopper = new AbortController();
  const startedMs = Date.now();
  let heardMs = startedMs;
  let shownMs = startedMs;
  let usedSeconds = 0;
  let isSilent = false;
  const end = () => {
    stopper.abort();
    // Kills all processes in the sandbox: the outermost one does not always take the inner ones along.
    kill();
  };
  const look = () => {
    const nowMs = Date.now();
    if (nowMs - shownMs >= reportEveryMs) {
      log.detail(`still running after ${Math.round((nowMs - startedMs) / 1000)} s: ${step.args.join(" ")}`);
      shownMs = nowMs;
      const seconds = cpuSeconds() ?? 0;
      if (seconds - usedSeconds >= busySeconds) heardMs = nowMs;
      usedSeconds = seconds;
    }
    if (isSilent || nowMs - heardMs < limits.silenceMs) return;
    isSilent = true;
    end();
  };
  const looking = setInterval(look, pollEveryMs);
  time.signal.addEventListener("abort", end, { once: true });
  if (time.signal.aborted) end();
  return {
    /** Aborts when the step must stop. */
    signal: stopper.signal,
    /** Call it when the step prints something. */
    heard: () => {
      heardMs = Date.now();
      if (!step.quiet) shownMs = heardMs;
    },
    wasSilent: () => isSilent && !time.signal.aborted,
    stop: () => {
      clearInterval(looking);
      time.signal.removeEventListener("abort", end);
    },
  };
}
