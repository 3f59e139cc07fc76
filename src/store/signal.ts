import type { Topic, Wakeups } from "./wakeups.ts";

/** Wakes a polling loop: it waits for a notification or a time limit. */
export type Signal = ReturnType<typeof createSignal>;

/** Subscribes to wake-ups of these topics, limited to `id` if given. A notification between two waits is kept. */
export function createSignal(wakeups: Pick<Wakeups, "on">, topics: readonly Topic[], id?: string) {
  let isSignalled = false;
  let end = () => {};
  const notify = () => {
    isSignalled = true;
    end();
  };
  const listen = (of: string) => {
    if (id === undefined || of === id || of === "") notify();
  };
  const unlisten = topics.map((topic) => wakeups.on(topic, listen));
  return {
    notify,
    /** Resolves to true on a notification, including one since the last wait; to false after `atMostMs` or when `signal` aborts. */
    async wait(atMostMs: number, signal?: AbortSignal) {
      if (!isSignalled && !signal?.aborted) {
        const { promise, resolve } = Promise.withResolvers<void>();
        end = resolve;
        const timer = setTimeout(resolve, atMostMs);
        signal?.addEventListener("abort", end, { once: true });
        await promise;
        clearTimeout(timer);
        signal?.removeEventListener("abort", end);
      }
      const rang = isSignalled;
      isSignalled = false;
      return rang;
    },
    stop() {
      for (const stop of unlisten) stop();
    },
  };
}
