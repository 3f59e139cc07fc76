import { Stopped } from "./unable.ts";

/** Places per key: so many callers at once, and a short wait for the next. */
export interface Slots {
  /** Resolves with the function that gives the place back. Throws `Stopped` (unavailable) when none came free in time. */
  take(key: string): Promise<() => void>;
}

/** Makes places: `count` for each key, and `waitMs` of patience. */
export function createSlots({ count, waitMs }: { readonly count: number; readonly waitMs: number }): Slots {
  const queues = new Map<string, Queue>();
  const release = (key: string, queue: Queue) => {
    const next = queue.waiting.shift();
    if (next !== undefined) return next();
    queue.taken -= 1;
    if (queue.taken === 0) queues.delete(key);
  };
  return {
    async take(key) {
      const queue = queues.get(key) ?? { taken: 0, waiting: [] };
      queues.set(key, queue);
      if (queue.taken < count) queue.taken += 1;
      else await turn(queue, waitMs);
      return () => release(key, queue);
    },
  };
}

interface Queue {
  taken: number;
  readonly waiting: (() => void)[];
}

// A place is handed over directly, so it never counts as free in between.
function turn(queue: Queue, waitMs: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const called = () => {
      clearTimeout(timer);
      resolve();
    };
    const timer = setTimeout(() => {
      queue.waiting.splice(queue.waiting.indexOf(called), 1);
      reject(
        new Stopped({ outcome: "unavailable", problem: "Too many requests read this database at the same time." }),
      );
    }, waitMs);
    queue.waiting.push(called);
  });
}
