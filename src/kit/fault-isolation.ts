import type { Log } from "./log.ts";

/** Runs named work. Returns false when the work failed; never rejects. */
export type RunIsolated = (name: string, work: () => void | Promise<void>) => Promise<boolean>;

/**
 * For periodic work on many things, where a fault in one must not stop the others. Logs a fault when it begins and not each time it
 * repeats: a full disk would otherwise be filled by its own error messages.
 */
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
