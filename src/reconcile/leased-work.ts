import { holdLease, releaseDeadLeases, type InProgress, type Lease, type LeasedTable } from "../store/leases.ts";
import type { Task, TaskReport, Platform } from "./platform.ts";

interface Leased {
  readonly id: string;
  readonly fence: number;
  readonly org_id?: string | null;
}

/** Claims rows one at a time and works on several concurrently, up to `limit`. */
export interface LeasedWork<T extends Leased> {
  readonly table: LeasedTable;
  readonly limit: number;
  /** How many rows of one organization may be in progress, so that its slow ones leave slots to others; by default all. */
  readonly perOrganization?: number;
  /** Claims a row that is not worked on here already, whose lease may seem expired after this machine slept. */
  readonly take: (inProgress: InProgress, rows: readonly T[]) => Promise<T | undefined>;
  /** Ends the row for every outcome that is its own; throws on platform faults. */
  readonly work: (row: T, lease: Lease, signal: AbortSignal) => Promise<void>;
  /** Called after `work` threw: must end or release the row. */
  readonly broken: (row: T, lease: Lease, stopping: boolean) => Promise<void>;
}

/** Claims rows while slots are free, and holds their leases while they are worked on. */
export function createLeasedWork<T extends Leased>(
  { db, log, owner }: Pick<Platform, "db" | "log" | "owner">,
  options: LeasedWork<T>,
) {
  const running = new Map<string, { readonly row: T; readonly work: Promise<void> }>();
  const { table, perOrganization = options.limit } = options;

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
    /** Fills the free slots; `again` is called whenever one becomes free. Resolves to the number of rows in progress. */
    async fill(signal: AbortSignal, again: () => void): Promise<number> {
      while (running.size < options.limit && !signal.aborted) {
        const rows = [...running.values()].map(({ row }) => row);
        const row = await options.take(inProgress(rows, perOrganization), rows);
        if (row === undefined) break;
        const work = perform(row, signal).finally(() => {
          running.delete(row.id);
          again();
        });
        running.set(row.id, { row, work });
      }
      return running.size;
    },
    underWay: (): readonly string[] => [...running.keys()],
    async settle(): Promise<void> {
      await Promise.all([...running.values()].map(({ work }) => work));
    },
  };
}

export interface LeasedTask<T extends Leased> extends LeasedWork<T>, Pick<Task, "name" | "periodMs" | "topics"> {
  /** Runs after the leases of dead processes were released, and before rows are claimed. */
  readonly before?: (underWay: readonly string[], signal: AbortSignal) => Promise<unknown>;
  /** Runs once the free slots are filled, until the signal; the result is added to the report. */
  readonly after?: (running: number, signal: AbortSignal) => Promise<Partial<TaskReport> | undefined>;
}

/** Creates a task from its leased work; `wake` makes the task run soon, and is called whenever a slot becomes free. */
export function createLeasedTask<T extends Leased>(
  platform: Pick<Platform, "db" | "log" | "owner">,
  wake: () => void,
  { name, periodMs, topics, before, after, ...options }: LeasedTask<T>,
): Task {
  const work = createLeasedWork(platform, options);
  return {
    ...{ name, periodMs, topics },
    async run(signal) {
      await releaseDeadLeases(platform.db, options.table);
      await before?.(work.underWay(), signal);
      const running = await work.fill(signal, wake);
      return { detail: `${running} under way`, ...(await after?.(running, signal)) };
    },
    settle: work.settle,
  };
}

export function inProgress(rows: readonly Omit<Leased, "fence">[], perOrganization: number): InProgress {
  const byOrganization = Map.groupBy(rows, ({ org_id }) => org_id ?? "");
  const full = [...byOrganization].filter(([, own]) => own.length >= perOrganization).map(([id]) => id);
  return { ids: rows.map(({ id }) => id), full, served: [...byOrganization.keys()] };
}
