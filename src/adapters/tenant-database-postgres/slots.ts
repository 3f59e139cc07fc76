import { Stopped } from "./unable.ts";

/** Limits the concurrent callers for each key; further callers wait briefly. */
export type Slots = ReturnType<typeof createSlots>;

export function createSlots({ count, waitMs }: { readonly count: number; readonly waitMs: number }) {
  const queues = new Map<string, Queue>();
  const release = (key: string, queue: Queue) => {
    const next = queue.waiting.shift();
    if (next !== undefined) return next();
    queue.taken -= 1;
    if (queue.taken === 0) queues.delete(key);
  };
  return {
    /** Resolves with a function that releases the slot. Throws `Stopped` (unavailable) if none becomes free in time. */
    async take(key: string) {
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

// Waits until a slot is handed over directly; it never counts as free in between.
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
