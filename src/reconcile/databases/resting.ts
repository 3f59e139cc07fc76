import type { DataDisk } from "../../ports/data-disk.ts";

/**
 * Tracks which databases can skip a full check. A check opens connections and reads sizes, which would cost too much for many idle
 * databases.
 */
export interface Resting {
  /**
   * Starts a round. If much was written to the disk since the last full check, all databases are checked, to find the one that wrote it.
   */
  begin(disk: DataDisk): Promise<void>;
  isResting(id: string): boolean;
  /** Call after a check that found no problem. */
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
      // A database that uses half of its limit or more is checked in every round.
      if (bytes * 2 < limitBytes) until.set(id, now() + restMs);
    },
    wake: (id) => void until.delete(id),
  };
}
