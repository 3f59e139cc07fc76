import type { TimeLimit } from "../../building/time-limit.ts";
import { BuildRefused } from "../../detection/failures.ts";

export interface BuildWatch {
  /** Aborts when the build must stop. */
  readonly signal: AbortSignal;
  /** Call it when the build prints something or starts its next step. */
  heard(): void;
  /** Throws if the build was stopped for its silence. */
  check(): void;
  stop(): void;
}

const pollEveryMs = 500;
// Processor seconds that count as a sign of life; an engine that only waits uses about none.
const busySeconds = 0.5;

/** Stops a build that prints nothing and computes nothing for `silenceMs`. */
export function watchBuild(
  time: Pick<TimeLimit, "signal">,
  silenceMs: number,
  look: { cpuSeconds(): number | undefined; running(): string | undefined },
): BuildWatch {
  const stopper = new AbortController();
  let heardMs = Date.now();
  let usedSeconds = look.cpuSeconds() ?? 0;
  let hung: string | undefined;
  const timer = setInterval(() => {
    const seconds = look.cpuSeconds() ?? 0;
    if (seconds - usedSeconds >= busySeconds) {
      heardMs = Date.now();
      usedSeconds = seconds;
    }
    if (Date.now() - heardMs < silenceMs) return;
    hung ??= look.running() ?? "the build";
    stopper.abort();
  }, pollEveryMs);
  return {
    signal: AbortSignal.any([time.signal, stopper.signal]),
    heard: () => (heardMs = Date.now()),
    check() {
      if (hung === undefined || time.signal.aborted) return;
      const summary = `\`${hung}\` hung: it printed and computed nothing for ${Math.round(silenceMs / 1000)} s.`;
      throw new BuildRefused("build_silent", { summary });
    },
    stop: () => clearInterval(timer),
  };
}
