import type { Log } from "./log.ts";

/** Runs named work. Returns false when the work failed; never rejects. */
export type RunIsolated = (name: string, work: () => void | Promise<void>) => Promise<boolean>;

/** Isolates items of periodic work, so that a fault in one does not stop the others; it is logged once, not on each repetition. */
export function createFaultIsolation(log: Log, message: string): RunIsolated {
  const failing = new Set<string>();
  return async (name, work) => {
    try {
      await work();
      failing.delete(name);
      return true;
    } catch (error) {
      if (!failing.has(name)) log.error({ err: error, of: name }, message);
      failing.add(name);
      return false;
    }
  };
}
