/** Stops what was started, in reverse order, once. */
export interface Shutdown {
  /** Registers how to stop something that now runs. */
  onEnd(what: string, end: () => Promise<void>): void;
  /** Stops everything. A part that fails is logged and does not keep the others from stopping. Further calls wait for the first. */
  run(): Promise<void>;
}

export function createShutdown(complain: (line: string) => void): Shutdown {
  const steps: { what: string; end: () => Promise<void> }[] = [];
  let under: Promise<void> | undefined;
  async function endAll(): Promise<void> {
    for (const { what, end } of steps.reverse()) {
      await end().catch((error: unknown) =>
        complain(`could not end ${what}: ${error instanceof Error ? error.message : String(error)}`),
      );
    }
  }
  return {
    onEnd: (what, end) => void steps.push({ what, end }),
    run: () => (under ??= endAll()),
  };
}

/** Signals within this time belong to the same request: a terminal, npm and `timeout` signal both the process and its group. */
const sameRequestMs = 2000;

/** Distinguishes a second request to end from a signal that only repeats the first. */
export function createEndRequests(now: () => number = () => performance.now()) {
  let firstAt: number | undefined;
  return {
    add(): "first" | "repeated" | "second" {
      if (firstAt !== undefined) return now() - firstAt < sameRequestMs ? "repeated" : "second";
      firstAt = now();
      return "first";
    },
  };
}
