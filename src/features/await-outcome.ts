import { createSignal } from "../store/signal.ts";
import type { Wakeups } from "../store/wakeups.ts";

export interface AwaitedOutcome {
  /** The subject of the "outcomes" wake-up. */
  readonly id: string;
  /** Stops the wait; its reason is thrown. */
  readonly signal: AbortSignal;
  /** A shorter polling interval, for outcomes that send no wake-up. */
  readonly pollEveryMs?: number;
}

// Wake-ups may be lost.
const pollEveryMs = 500;

/** Calls `look` after each wake-up, and periodically without one, until it returns an outcome. Holds no transaction or connection meanwhile. */
export async function awaitOutcome<T>(
  wakeups: Pick<Wakeups, "on">,
  awaited: Omit<AwaitedOutcome, "id"> & Partial<AwaitedOutcome>,
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
