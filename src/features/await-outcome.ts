import { createSignal } from "../store/signal.ts";
import type { Wakeups } from "../store/wakeups.ts";

export interface AwaitedOutcome {
  /** The subject of the "outcomes" hints. */
  readonly id: string;
  /** Ends the wait; its reason is thrown. */
  readonly signal: AbortSignal;
  /** Sooner than usual, for outcomes without a hint. */
  readonly pollEveryMs?: number;
}

// A wake-up may be lost.
const pollEveryMs = 500;

/** Looks when a hint comes, and from time to time without one, until there is one. Holds nothing meanwhile. */
export async function awaitOutcome<T>(
  wakeups: Pick<Wakeups, "on">,
  awaited: AwaitedOutcome,
  look: () => Promise<T | undefined>,
): Promise<T> {
  const wakeup = createSignal(wakeups, ["outcomes"], awaited.id);
  try {
    for (;;) {
      awaited.signal.throwIfAborted();
      const outcome = await look();
      if (outcome !== undefined) return outcome;
      await wakeup.wait(awaited.pollEveryMs ?? pollEveryMs, awaited.signal);
    }
  } finally {
    wakeup.stop();
  }
}
