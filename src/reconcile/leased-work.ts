import type { Log } from "../kit/log.ts";
import type { Db } from "../store/database.ts";
import { holdLease, type Lease, type LeasedTable } from "../store/leases.ts";

/** What a taken row says of its lease. */
interface Leased {
  readonly id: string;
  readonly fence: number;
}

/** Rows that are taken one by one and worked on at the same time, up to a limit. */
export interface LeasedWork<T extends Leased> {
  readonly table: LeasedTable;
  readonly owner: string;
  readonly limit: number;
  /**
   * Takes a row that is none of those under way here. Their leases may look as if they had run out: the database's clock goes on while
   * this machine sleeps, and the heartbeat doesn't.
   */
  readonly take: (underWay: readonly string[]) => Promise<T | undefined>;
  /** Ends the row in every case that is the row's own; throws faults of the platform. */
  readonly work: (row: T, lease: Lease, signal: AbortSignal) => Promise<void>;
  /** A fault was thrown: the row must not stay as it is. */
  readonly broken: (row: T, lease: Lease, stopping: boolean) => Promise<void>;
}

/** Takes rows while there is room and keeps their leases while they are worked on. */
export function createLeasedWork<T extends Leased>(db: Db, log: Log, options: LeasedWork<T>) {
  const running = new Map<string, Promise<void>>();
  const { table, owner } = options;

  async function perform(row: T, signal: AbortSignal): Promise<void> {
    const lease: Lease = { table, id: row.id, owner, fence: row.fence };
    try {
      await holdLease(db, lease, signal, (held) => options.work(row, lease, held));
    } catch (error) {
      if (!signal.aborted) log.error({ err: error, id: row.id }, "the work failed");
      await options
        .broken(row, lease, signal.aborted)
        .catch((cause: unknown) => log.error({ err: cause }, "could not close the row; its lease will run out"));
    }
  }

  return {
    /** Fills the free places; `again` is called whenever one becomes free. */
    async fill(signal: AbortSignal, again: () => void): Promise<number> {
      while (running.size < options.limit && !signal.aborted) {
        const row = await options.take([...running.keys()]);
        if (row === undefined) break;
        const work = perform(row, signal).finally(() => {
          running.delete(row.id);
          again();
        });
        running.set(row.id, work);
      }
      return running.size;
    },
    underWay: (): readonly string[] => [...running.keys()],
    async settle(): Promise<void> {
      await Promise.all(running.values());
    },
  };
}
