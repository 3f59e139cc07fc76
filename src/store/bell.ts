import type { Topic, Wakeups } from "./wakeups.ts";

/** Something to wait on between two looks. */
export interface Bell {
  ring(): void;
  /** Resolves with true when it rings or has rung since the last wait, with false after this long or when the signal aborts. */
  wait(atMostMs: number, signal?: AbortSignal): Promise<boolean>;
  /** It listens no more. */
  stop(): void;
}

/** Rings when there is a wake-up of one of the topics; with an id, of that alone. A ring while nobody waits is not lost. */
export function createBell(wakeups: Pick<Wakeups, "on">, topics: readonly Topic[], id?: string): Bell {
  let hasRung = false;
  let end = () => {};
  const ring = () => {
    hasRung = true;
    end();
  };
  const listen = (of: string) => {
    if (id === undefined || of === id || of === "") ring();
  };
  const unlisten = topics.map((topic) => wakeups.on(topic, listen));
  return {
    ring,
    async wait(atMostMs, signal) {
      if (!hasRung && !signal?.aborted) {
        const { promise, resolve } = Promise.withResolvers<void>();
        end = resolve;
        const timer = setTimeout(resolve, atMostMs);
        signal?.addEventListener("abort", end, { once: true });
        await promise;
        clearTimeout(timer);
        signal?.removeEventListener("abort", end);
      }
      const rang = hasRung;
      hasRung = false;
      return rang;
    },
    stop() {
      for (const stop of unlisten) stop();
    },
  };
}
