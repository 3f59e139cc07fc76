import type { Log } from "../kit/log.ts";
import { holdLease, type Lease } from "../store/leases.ts";
import type { Db } from "../store/database.ts";

/** Rows that are taken one by one and worked on at the same time, up to a limit. */
export interface LeasedWork<T> {
  readonly limit: number;
  readonly take: () => Promise<T | undefined>;
  readonly leaseOf: (row: T) => Lease;
  /** Ends the row in every case that is the row's own; throws faults of the platform. */
  readonly work: (row: T, signal: AbortSignal) => Promise<void>;
  /** A fault was thrown: the row must not stay as it is. */
  readonly broken: (row: T, error: unknown, stopping: boolean) => Promise<void>;
}

/** Takes rows while there is room and keeps their leases while they are worked on. */
export function createLeasedWork<T>(db: Db, log: Log, options: LeasedWork<T>) {
  const running = new Set<Promise<void>>();

  async function perform(row: T, signal: AbortSignal, done: () => void): Promise<void> {
    try {
      await holdLease(db, options.leaseOf(row), signal, (held) => options.work(row, held));
    } catch (error) {
      if (!signal.aborted) log.error({ err: error, id: options.leaseOf(row).id }, "the work failed");
      await options
        .broken(row, error, signal.aborted)
        .catch((cause: unknown) => log.error({ err: cause }, "could not close the row; its lease will run out"));
    } finally {
      done();
    }
  }

  return {
    /** Fills the free places; `again` is called whenever one becomes free. */
    async fill(signal: AbortSignal, again: () => void): Promise<number> {
      while (running.size < options.limit && !signal.aborted) {
        const row = await options.take();
        if (row === undefined) break;
        const work: Promise<void> = perform(row, signal, () => {
          running.delete(work);
          again();
        });
        running.add(work);
      }
      return running.size;
    },
    async settle(): Promise<void> {
      await Promise.all(running);
    },
  };
}
