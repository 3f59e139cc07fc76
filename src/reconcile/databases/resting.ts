import type { DataDisk } from "../../ports/data-disk.ts";

/** Which databases need no closer look now: a look makes connections and reads sizes, which many databases at rest would pay for all day. */
export interface Resting {
  /** Begins a round: when much was written to the disk since the last close look, all are looked at, to find the one that wrote it. */
  begin(disk: DataDisk): Promise<void>;
  isResting(id: string): boolean;
  /** After a look that found it in order. */
  rest(id: string, seen: { readonly bytes: number; readonly limitBytes: number }): void;
  wake(id: string): void;
}

const restMs = 30_000;
const muchWrittenBytes = 64 * 1024 ** 2;

export function createResting(now: () => number = () => performance.now()): Resting {
  const until = new Map<string, number>();
  let mostAvailable = 0;
  return {
    async begin(disk) {
      const { available_bytes } = await disk.observe();
      if (available_bytes < mostAvailable - muchWrittenBytes) {
        until.clear();
        mostAvailable = available_bytes;
      }
      mostAvailable = Math.max(mostAvailable, available_bytes);
    },
    isResting: (id) => (until.get(id) ?? -Infinity) > now(),
    rest(id, { bytes, limitBytes }) {
      // Near its limit it is looked at in every round.
      if (bytes * 2 < limitBytes) until.set(id, now() + restMs);
    },
    wake: (id) => void until.delete(id),
  };
}
